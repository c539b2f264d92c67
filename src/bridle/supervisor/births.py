"""New sessions: made by people, one after the other, each under a policy that a person has chosen.

Owns what a new session is given, and the order of its first events. Who may have one is for the
`guards` to say.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ..approvals import Person
from ..approvals.policies import Policies
from ..errors import InvalidLaunch, NotPossible
from ..ids import new_uuid
from ..journal import NewEvent
from ..journal.events import MAX_BODY
from ..process.spec import LaunchSpec
from ..session.policies import homes_of
from ..views import stream
from ..views.stream import Created, External, Limits, OrphanRule
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
from .sessions import Sessions, copy


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
    loopback: bool = False
    external: External | None = None


class Births:
    """Names and limits are checked against all who are there: so there is one birth at a time."""

    def __init__(self, means: Means, sessions: Sessions, guards: Guards) -> None:
        self._means = means
        self._sessions = sessions
        self._guards = guards
        self._policies = Policies(means.journal, means.owners, means.now)
        self._lock = asyncio.Lock()

    async def create(self, wish: Wish, by: Person) -> SessionRecord:
        folder, launch = _folder(wish.cwd), stored_spec(wish.launch)
        env = resolve(sources(wish.env), secrets(wish.env), self._means.environ)
        spec = LaunchSpec(cwd=folder, env=env, **launch)
        self._check_birth(wish)
        # Files are read before it is anybody's turn: who is slow keeps no other birth waiting.
        policy = await asyncio.to_thread(policy_of, wish.policy, spec)
        async with self._lock:
            session, above = self._check_birth(wish)
            created = Created(
                id=session,
                name=wish.name,
                folder=folder,
                at=self._means.now(),
                labels=dict(wish.labels),
                spec=launch,
                env=sources(wish.env),
                policy=policy.digest,
                guarded=policy.files,
                homes=self._homes(spec),
                parent=above.id if above else None,
                lineage=lineage_below(above.id if above else None, self._guards.family),
                limits=wish.limits,
                orphans=wish.orphans,
                by=by.name,
                loopback=wish.loopback,
                external=wish.external,
            )
            queued = stream.Queued(at=self._means.now()) if wish.start else None
            events = self._events(created, wish.prompt, queued)
            await self._apply(created, policy.text, source_of(wish.policy), by)
            self._means.secrets[session] = secrets(wish.env)
            self._means.secret_values.hold(session, hidden(created.env, env))
            return await self._born(created, events)

    async def fork(
        self, charge: Charge, by: Person, prompt: Said | None, name: str, given: str | None
    ) -> SessionRecord:
        """One that goes on from what this one has said."""
        async with self._lock:
            session = self._check(given, name)
            was = copy(charge.record)
            if was.claude_session_id is None:
                raise NotPossible("fork", was.state, "nothing was said in it yet", was.id)
            above = self._sessions.get(was.parent) if was.parent else None
            self._guards.check_birth(above, was.limits)
            created = self._forked(session, was, name, by)
            resume = was.claude_session_id
            queued = stream.Queued(at=self._means.now(), resume=resume, fork=True)
            events = self._events(created, prompt, queued)
            text = await self._policies.text(was.policy)
            await self._apply(created, text, f"that of session {was.id}", by)
            self._means.secrets[session] = dict(self._means.secrets.get(was.id, {}))
            return await self._born(created, events)

    def _check_birth(self, wish: Wish) -> tuple[str, Charge | None]:
        """Its id, and its parent."""
        session = self._check(wish.id, wish.name)
        above = self._sessions.get(wish.parent) if wish.parent else None
        self._guards.check_birth(above, wish.limits)
        return session, above

    def _check(self, given: str | None, name: str) -> str:
        """The id of a session that is to be born."""
        self._sessions.check_name(name)
        if given is None:
            return new_uuid()
        self._sessions.check_name(checked_uuid(given))
        return given

    def _homes(self, spec: LaunchSpec) -> dict[str, str]:
        inherited = self._means.environ if spec.inherit_env else {}
        homes = homes_of(replace(spec, env={**inherited, **spec.env}, inherit_env=False))
        return {
            "home": homes["home"],
            "claude_home": homes["claude_home"],
            "bridle_home": str(self._means.home),
        }

    def _forked(self, session: str, was: SessionRecord, name: str, by: Person) -> Created:
        """The facts of one that begins where another one is."""
        return Created(
            id=session,
            name=name,
            folder=was.folder,
            at=self._means.now(),
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

    def _events(
        self, created: Created, prompt: Said | None, queued: stream.Queued | None
    ) -> list[NewEvent]:
        """Its first, made before anything is stored: what can't be is half a session otherwise."""
        events = [note(stream.CREATED, created)]
        if len(events[0].body) > MAX_BODY:
            raise InvalidLaunch("labels and options of a session may have 256 KB in all")
        if prompt is not None:
            told = prompted(prompt, self._means.now(), created.by)
            events.append(note(stream.PROMPTED, told))
        if queued:
            events.append(note(stream.QUEUED, queued))
        return events

    async def _apply(self, created: Created, text: str, source: str, by: Person) -> None:
        """Pin its policy."""
        await self._policies.apply(created.id, text, source=source, by=by, files=created.guarded)

    async def _born(self, created: Created, events: Sequence[NewEvent]) -> SessionRecord:
        charge = self._sessions.add(SessionRecord(id=created.id, name=created.name))
        await charge.pen.stored(events)
        last = charge.pen.last_seq
        return await self._sessions.wait(charge, lambda r: r.is_created and r.seq >= last)


def _folder(given: str | os.PathLike[str]) -> str:
    path = Path(given).absolute()
    if not path.is_dir():
        raise InvalidLaunch(f"there is no folder {path}")
    return str(path)
