"""New sessions: made by people, or by agents below themselves, one after the other.

Owns what a new session is given, and the order of its first events. Who may have one is for the
`guards` to say, and what an agent may make of it for `children`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ..approvals import Agent, Person
from ..approvals.policies import Policies
from ..errors import InvalidLaunch, NotPossible, UnknownSession, WiderThanParent
from ..ids import new_uuid
from ..journal import NewEvent
from ..journal.events import MAX_BODY
from ..policy.policy import Policy
from ..policy.presets import STRICTEST_FIRST, Preset
from ..process.spec import LaunchSpec
from ..session.policies import homes_of
from ..views import stream
from ..views.stream import Ceiling, Created, External, Limits, OrphanRule
from .charge import Charge
from .children import (
    Standing,
    check_child_name,
    child_folder,
    child_policy,
    child_spec,
    closed,
    launched_spec,
)
from .delegations import policy_under
from .environment import Value, hidden, resolve, secrets, sources
from .guards import Guards
from .lineage import LineageLimits, lineage_below
from .making import check_conversation, check_servers, is_folder_trusted, stored_spec
from .means import Means
from .notes import note
from .policies import PolicyGiven, policy_of, source_of
from .prompts import Said, check_commands, checked_uuid, prompted
from .record import SessionRecord
from .sessions import Sessions, copy


class Wish(Struct, frozen=True, kw_only=True):
    """What somebody wants a session to be."""

    cwd: str | os.PathLike[str]
    policy: PolicyGiven | None
    env: Mapping[str, Value] = {}
    launch: Mapping[str, Any] = {}
    id: str | None
    name: str
    labels: Mapping[str, str]
    parent: str | None = None
    limits: Limits
    orphans: OrphanRule = "stop"
    prompt: Said | None = None
    start: bool
    loopback: bool = False
    asks_above: bool = True
    external: External | None = None
    #: A conversation of the CLI's own with which it is to begin.
    resume: str | None = None


class Fork(Struct, frozen=True, kw_only=True):
    """What somebody wants a fork to be. `at` is the message with which it begins; else the last."""

    prompt: Said | None = None
    name: str = ""
    id: str | None = None
    at: str | None = None


class _Given(Struct, kw_only=True):
    """What it gets of that, or of its parent."""

    folder: str
    spec: dict[str, Any]
    #: Where its variables come from, and the values that are not stored.
    env: dict[str, str]
    secrets: dict[str, str]
    policy: Policy
    source: str
    above: Standing | None = None

    @property
    def ceilings(self) -> tuple[Ceiling, ...]:
        return (*self.above.record.ceilings, self.above.ceiling) if self.above else ()


class Births:
    """Names and limits are checked against all who are there: so there is one birth at a time."""

    def __init__(
        self, means: Means, sessions: Sessions, guards: Guards, limits: LineageLimits
    ) -> None:
        self._means = means
        self._limits = limits
        self._sessions = sessions
        self._guards = guards
        self._policies = Policies(means.journal, means.owners, means.now)
        self._lock = asyncio.Lock()

    @property
    def turn(self) -> asyncio.Lock:
        """For whoever else wants to see who is there, and to be one of them."""
        return self._lock

    async def create(self, wish: Wish, by: Person | Agent) -> SessionRecord:
        if isinstance(by, Agent):
            check_child_name(wish.name)
            wish = replace(wish, parent=self._parent(wish, by).id)
        self._check_birth(wish)
        # Files are read before it is anybody's turn: who is slow keeps no other birth waiting.
        given = await (self._below(wish) if isinstance(by, Agent) else self._of(wish))
        env = resolve(given.env, given.secrets, self._means.environ)
        async with self._lock:
            session, above = self._check_birth(wish)
            if given.above and above:
                self._check_same(given.above, above)
            self._check_resume(wish.resume)
            created = self._created(session, wish, given, above, env)
            created = replace(created, by=_name(by), at=self._means.now())
            queued = stream.Queued(at=created.at, resume=wish.resume) if wish.start else None
            if not isinstance(by, Agent):
                await check_commands(self._means, created, wish.prompt, given.policy)
            events = self._events(created, wish.prompt, queued, by)
            await self._keep(given.above, by)
            await self._apply(created, given.policy.text, given.source, by)
            self._means.secrets[session] = given.secrets
            self._means.secret_values.hold(session, hidden(created.env, env))
            return await self._born(created, events, above)

    def _check_resume(self, conversation: str | None) -> None:
        """Two agents that go on with one conversation would write over each other."""
        for one in self._sessions if conversation else ():
            if one.record.claude_session_id == conversation:
                words = f"session {one.record.name or one.id} goes on with that conversation"
                raise InvalidLaunch(f"{words} already: `bridle resume` or `bridle fork` that one")

    def _created(
        self, session: str, wish: Wish, given: _Given, above: Charge | None, env: dict[str, str]
    ) -> Created:
        lineage = lineage_below(above.id if above else None, self._guards.family)
        is_agents = given.above is not None
        return Created(
            id=session,
            name=wish.name,
            folder=given.folder,
            at=0,
            labels=dict(wish.labels),
            spec=given.spec,
            env=given.env,
            policy=given.policy.digest,
            guarded=given.policy.files,
            homes=self._homes(LaunchSpec(cwd=given.folder, env=env, **given.spec)),
            parent=above.id if above else None,
            lineage=lineage,
            limits=wish.limits,
            orphans=wish.orphans,
            # What agents make may run others in turn, unless it stands too deep for that.
            loopback=len(lineage) < self._limits.depth if is_agents else wish.loopback,
            asks_above=wish.asks_above,
            ceilings=given.ceilings,
            external=wish.external,
            resumes=wish.resume,
        )

    async def _of(self, wish: Wish) -> _Given:
        """As a person wants it."""
        folder, kept, policy = _folder(wish.cwd), stored_spec(wish.launch), wish.policy or "ask"
        env = resolve(sources(wish.env), secrets(wish.env), self._means.environ)
        spec = LaunchSpec(cwd=folder, env=env, **kept)
        if wish.loopback and not wish.external:
            await asyncio.to_thread(check_servers, spec)
            kept["strict_mcp_config"] = True
        if wish.resume is not None:
            await asyncio.to_thread(check_conversation, wish.resume, spec)
        return _Given(
            folder=folder,
            spec=kept,
            env=sources(wish.env),
            secrets=secrets(wish.env),
            policy=await asyncio.to_thread(policy_of, policy, spec),
            source=source_of(policy),
        )

    # --- below an agent

    def _parent(self, wish: Wish, by: Agent) -> Charge:
        """The agent's own session: it makes none below another."""
        charge = self._sessions.get(by.session)
        if wish.parent and self._sessions.get(wish.parent) is not charge:
            raise UnknownSession(wish.parent)
        if not charge.record.loopback:
            hint = "a person must have started it so that it may run others (loopback)"
            raise NotPossible("start a child", charge.record.state, hint, charge.id)
        return charge

    async def _below(self, wish: Wish) -> _Given:
        """As an agent wants it, as far as it has that itself."""
        charge = self._sessions.get(wish.parent or "")
        above = await self._standing(charge)
        parent = above.record
        if wish.resume is not None:
            raise InvalidLaunch("a person's conversations are not for an agent to go on with")
        if wish.env:
            raise InvalidLaunch("variables are not for an agent to choose: it hands on its own")
        folder = await asyncio.to_thread(child_folder, wish.cwd, parent)
        is_trusted = await is_folder_trusted(self._means, parent.folder)
        options = stored_spec(wish.launch)
        spec = await asyncio.to_thread(child_spec, options, parent, is_trusted=is_trusted)
        chosen = child_policy(wish.policy, spec.get("permission_mode"), above.policy.preset)
        launch = LaunchSpec(cwd=folder, **spec)
        return _Given(
            folder=folder,
            spec=launched_spec(spec),
            env=parent.env,
            secrets=dict(self._means.secrets.get(parent.id, {})),
            policy=await asyncio.to_thread(policy_of, chosen, launch),
            source=source_of(chosen),
            above=above,
        )

    async def _standing(self, charge: Charge) -> Standing:
        record = copy(charge.record)
        policy = await policy_under(self._means, record)
        return Standing(record, policy.with_preset(strictest(charge, policy.preset)))

    def _check_same(self, seen: Standing, now: Charge) -> None:
        """Nobody has taken anything from the parent since it was looked at."""
        is_same = seen.record.policy == now.record.policy
        if not is_same or strictest(now, seen.policy.preset) != seen.policy.preset:
            hint = "its policy has just been changed: try again"
            raise NotPossible("start a child", now.record.state, hint, now.id)

    # --- from what another one has said

    async def fork(self, charge: Charge, fork: Fork, by: Person | Agent) -> SessionRecord:
        """One that goes on from what this one has said, or from a part of it."""
        if isinstance(by, Agent) and by.session not in charge.record.lineage:
            raise UnknownSession(charge.id)
        standing, bounds = None, {}
        if isinstance(by, Agent):
            check_child_name(fork.name)
            is_trusted = await is_folder_trusted(self._means, charge.record.folder)
            bounds = await asyncio.to_thread(closed, copy(charge.record), is_trusted=is_trusted)
            standing = await self._standing(self._sessions.get(by.session))
        async with self._lock:
            session = self._check(fork.id, fork.name)
            was = copy(charge.record)
            if standing:
                self._check_same(standing, self._sessions.get(standing.record.id))
            if was.claude_session_id is None:
                raise NotPossible("fork", was.state, "nothing was said in it yet", was.id)
            above = self._sessions.get(was.parent) if was.parent else None
            self._guards.check_birth(above, was.limits)
            created = self._forked(session, was, fork.name, standing)
            created = replace(created, spec={**was.spec, **bounds})
            created = replace(created, by=_name(by), at=self._means.now())
            queued = stream.Queued(
                at=created.at, resume=was.claude_session_id, fork=True, node=fork.at
            )
            if not isinstance(by, Agent):
                policy = await policy_under(self._means, was)
                await check_commands(self._means, created, fork.prompt, policy)
            events = self._events(created, fork.prompt, queued, by)
            text = await self._policies.text(was.policy)
            if standing:
                _check_unlimited(Policy.read(text, was.guarded))
            await self._keep(standing, by)
            await self._apply(created, text, f"that of session {was.id}", by)
            self._means.secrets[session] = dict(self._means.secrets.get(was.id, {}))
            # The other one may be deleted, and what it has said is in this one, too.
            self._means.secret_values.hold(session, self._means.secret_values.of(was.id))
            return await self._born(created, events, above)

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

    def _forked(
        self, session: str, was: SessionRecord, name: str, agent: Standing | None
    ) -> Created:
        """The facts of one that begins where another one is. By an agent it is below that one in
        any case, also where it was a person who made the other."""
        ceilings = was.ceilings
        if agent:
            # Also a second one of the same agent, which has less than it had then.
            bounds = (*agent.record.ceilings, agent.ceiling)
            ceilings += tuple(one for one in bounds if one not in ceilings)
        return Created(
            id=session,
            name=name,
            folder=was.folder,
            at=0,
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
            forked_from=was.id,
            loopback=was.loopback,
            asks_above=was.asks_above,
            ceilings=ceilings,
        )

    def _events(
        self,
        created: Created,
        prompt: Said | None,
        queued: stream.Queued | None,
        by: Person | Agent,
    ) -> list[NewEvent]:
        """Its first, made before anything is stored: what can't be is half a session otherwise."""
        events = [note(stream.CREATED, created)]
        if len(events[0].body) > MAX_BODY:
            raise InvalidLaunch("labels and options of a session may have 256 KB in all")
        if prompt is not None:
            # What an agent may not read it must not have another one read for it.
            is_agents = isinstance(by, Agent)
            told = prompted(prompt, self._means.now(), created.by, is_verbatim=is_agents)
            events.append(note(stream.PROMPTED, told))
        if queued:
            events.append(note(stream.QUEUED, queued))
        return events

    async def _apply(self, created: Created, text: str, source: str, by: Person | Agent) -> None:
        """Pin its policy."""
        files, lineage = created.guarded, created.lineage
        await self._policies.apply(
            created.id, text, source=source, by=by, files=files, lineage=lineage
        )

    async def _keep(self, above: Standing | None, by: Person | Agent) -> None:
        """Have the policy that bounds it, which may be in force nowhere else."""
        if above:
            source = f"bounds set by session {above.record.id}"
            await self._policies.keep(above.policy.text, source=source, by=by)

    async def _born(
        self, created: Created, events: Sequence[NewEvent], above: Charge | None
    ) -> SessionRecord:
        charge = self._sessions.add(SessionRecord(id=created.id, name=created.name))
        await charge.pen.stored(events)
        if above:
            told = stream.ChildCreated(session=created.id, name=created.name, at=created.at)
            above.write(stream.CHILD_CREATED, told)
        last = charge.pen.last_seq
        record = await self._sessions.wait(charge, lambda r: r.is_created and r.seq >= last)
        if above:
            self._guards.born_below(above)
        return record


def strictest(charge: Charge, preset: Preset) -> Preset:
    """The preset of a policy, or what was chosen since, or plan mode: whichever allows least."""
    session = charge.agent.session if charge.agent else None
    mode = session.permission_mode if session else None
    found = [preset]
    if session and session.policy:
        found.append(session.policy.policy.preset)
    if (mode or charge.record.spec.get("permission_mode")) == "plan":
        found.append("plan")
    return min(found, key=STRICTEST_FIRST.index)


def _check_unlimited(policy: Policy) -> None:
    """What one may grant only so often, or so long, two may grant twice: a person may want that."""
    for entry in policy.delegate or ():
        if entry.is_limited:
            rules = ", ".join(rule.text for rule in entry.rules)
            raise WiderThanParent("fork", f"one more that may grant {rules}", "just one")


def _name(by: Person | Agent) -> str:
    return by.name if isinstance(by, Person) else f"agent {by.session}"


def _folder(given: str | os.PathLike[str]) -> str:
    path = Path(given).absolute()
    if not path.is_dir():
        raise InvalidLaunch(f"there is no folder {path}")
    return str(path)
