"""New sessions: made by people, one after the other, each under a policy that a person has chosen.

Owns what a new session is given, and the order of its first events. Who may have one is for the
`guards` to say.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ..approvals import Person
from ..approvals.policies import Policies
from ..errors import InvalidLaunch, NotPossible
from ..ids import new_uuid
from ..journal.events import MAX_BODY
from ..process.spec import LaunchSpec
from ..session.policies import homes_of
from ..views import stream
from ..views.stream import Created, Limits, OrphanRule
from .charge import Charge
from .environment import Value, hidden, resolve, secrets, sources
from .guards import Guards
from .lineage import lineage_below
from .making import stored_spec
from .means import Means
from .notes import note
from .policies import PolicyGiven, policy_of, source_of
from .prompts import Said, checked_uuid, prompted
from .record import SessionRecord
from .sessions import Sessions


class Wish(Struct, frozen=True, kw_only=True):
    """What somebody wants a session to be."""

    cwd: str | os.PathLike[str]
    policy: PolicyGiven
    env: Mapping[str, Value]
    launch: Mapping[str, Any]
    id: str | None
    name: str
    labels: Mapping[str, str]
    parent: str | None
    limits: Limits
    orphans: OrphanRule
    prompt: Said | None
    start: bool


class Births:
    """Names and limits are checked against all who are there: so there is one birth at a time."""

    def __init__(self, means: Means, sessions: Sessions, guards: Guards) -> None:
        self._means = means
        self._sessions = sessions
        self._guards = guards
        self._lock = asyncio.Lock()

    async def create(self, wish: Wish, by: Person) -> SessionRecord:
        async with self._lock:
            session = self._check(wish.id, wish.name)
            above = self._sessions.get(wish.parent) if wish.parent else None
            self._guards.check_birth(above, wish.limits)
            facts = await self._settled(session, wish, by)
            created = replace(
                facts,
                name=wish.name,
                labels=dict(wish.labels),
                parent=above.id if above else None,
                lineage=lineage_below(above.id if above else None, self._guards.family),
                limits=wish.limits,
                orphans=wish.orphans,
            )
            queued = stream.Queued(at=self._means.now()) if wish.start else None
            return await self._born(created, wish.prompt, queued)

    async def fork(
        self, charge: Charge, by: Person, prompt: Said | None, name: str, given: str | None
    ) -> SessionRecord:
        """One that goes on from what this one has said."""
        async with self._lock:
            session = self._check(given, name)
            was = charge.record
            if was.claude_session_id is None:
                raise NotPossible("fork", was.state, "nothing was said in it yet", was.id)
            above = self._sessions.get(was.parent) if was.parent else None
            self._guards.check_birth(above, was.limits)
            created = replace(await self._forked(session, was, by), name=name)
            resume = was.claude_session_id
            queued = stream.Queued(at=self._means.now(), resume=resume, fork=True)
            return await self._born(created, prompt, queued)

    def _check(self, given: str | None, name: str) -> str:
        """The id of a session that is to be born."""
        self._sessions.check_name(name)
        if given is None:
            return new_uuid()
        self._sessions.check_name(checked_uuid(given))
        return given

    async def _settled(self, session: str, wish: Wish, by: Person) -> Created:
        """Its facts, with its policy pinned."""
        means = self._means
        folder = _folder(wish.cwd)
        launch = stored_spec(wish.launch)
        given = secrets(wish.env)
        env = resolve(sources(wish.env), given, means.environ)
        spec = LaunchSpec(cwd=folder, env=env, **launch)
        policy = await asyncio.to_thread(policy_of, wish.policy, spec)
        policies = Policies(means.journal, means.owners, means.now)
        source = source_of(wish.policy)
        await policies.apply(session, policy.text, source=source, by=by, files=policy.files)
        means.secrets[session] = given
        means.secret_values.hold(session, hidden(sources(wish.env), env))
        inherited = means.environ if spec.inherit_env else {}
        homes = homes_of(replace(spec, env={**inherited, **env}, inherit_env=False))
        return Created(
            id=session,
            name="",
            folder=folder,
            at=means.now(),
            spec=launch,
            env=sources(wish.env),
            policy=policy.digest,
            guarded=policy.files,
            homes={
                "home": homes["home"],
                "claude_home": homes["claude_home"],
                "bridle_home": str(means.home),
            },
            by=by.name,
        )

    async def _forked(self, session: str, was: SessionRecord, by: Person) -> Created:
        """The same for a session that begins where another one is."""
        means = self._means
        policies = Policies(means.journal, means.owners, means.now)
        text, source = await policies.text(was.policy), f"that of session {was.id}"
        await policies.apply(session, text, source=source, by=by, files=was.guarded)
        means.secrets[session] = dict(means.secrets.get(was.id, {}))
        return Created(
            id=session,
            name="",
            folder=was.folder,
            at=means.now(),
            labels=was.labels,
            spec=was.spec,
            env=was.env,
            policy=was.policy,
            guarded=was.guarded,
            homes=was.homes,
            parent=was.parent,
            lineage=was.lineage,
            limits=was.limits,
            orphans=was.orphans,
            by=by.name,
            forked_from=was.id,
        )

    async def _born(
        self, created: Created, prompt: Said | None, queued: stream.Queued | None
    ) -> SessionRecord:
        events = [note(stream.CREATED, created)]
        if len(events[0].body) > MAX_BODY:
            raise InvalidLaunch("labels and options of a session may have 256 KB in all")
        if prompt is not None:
            told = prompted(prompt, self._means.now(), created.by)
            events.append(note(stream.PROMPTED, told))
        if queued:
            events.append(note(stream.QUEUED, queued))
        charge = self._sessions.add(SessionRecord(id=created.id, name=created.name))
        await charge.pen.stored(events)
        last = charge.pen.last_seq
        return await self._sessions.wait(charge, lambda r: r.is_created and r.seq >= last)


def _folder(given: str | os.PathLike[str]) -> str:
    path = Path(given).absolute()
    if not path.is_dir():
        raise InvalidLaunch(f"there is no folder {path}")
    return str(path)
