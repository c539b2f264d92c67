"""Rules that were remembered: for a session, in its stream; for always, as records.

Owns where they are kept and who is told of them; what a rule means is the policy's. A rule that is
no longer wanted is marked, not erased: who took it back is a part of the trail.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Literal, TypeAlias
from weakref import WeakSet

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..errors import Asleep, WrongRevision
from ..journal import Durability, Event, Journal, NewEvent, Projection
from ..journal.owner import Owners
from .errors import UnknownRule
from .events import sealed
from .model import Agent, Always, Approval, Decided, ForSession, Once, Person, Reject
from .standing import only_a_person

RULE_ADDED = "rule.added"
RULE_REMOVED = "rule.removed"
REMEMBERED = "remembered"
SESSION_RULES = "session-rules"

_log = logging.getLogger(__name__)


class Removal(Struct, frozen=True):
    by: Person
    at: float


class RememberedRule(Struct, frozen=True, kw_only=True):
    """A rule that somebody had remembered when deciding an approval, whose id is the rule's too.

    `session` is set for one of a session, and an agent has it remembered for no other; `folder` is
    the scope of one for always ("": everywhere).
    """

    id: str
    rule: str
    behavior: Literal["allow", "deny"]
    by: Person | Agent
    at: float
    session: str | None = None
    folder: str = ""
    removed: Removal | None = None

    def covers(self, session: str, folder: str) -> bool:
        if self.session is not None:
            return self.session == session
        scope = self.folder.rstrip("/")
        return not scope or folder == scope or folder.startswith(f"{scope}/")


class RuleRemoved(Struct, frozen=True):
    id: str
    removal: Removal


#: Told of a rule that is in force from now on, or (`removed`) no longer.
ApplyRule: TypeAlias = Callable[[RememberedRule], None]

_RULES: dict[str, msgspec.json.Decoder[RememberedRule] | msgspec.json.Decoder[RuleRemoved]] = {
    RULE_ADDED: msgspec.json.Decoder(RememberedRule),
    RULE_REMOVED: msgspec.json.Decoder(RuleRemoved),
}


def rule_of(approval: Approval, decided: Decided) -> RememberedRule | None:
    """What the decision wants remembered, if it does."""
    remember = getattr(decided.choice, "remember", Once())
    if not isinstance(decided.by, Person | Agent) or isinstance(remember, Once):
        return None
    if isinstance(decided.by, Agent) and not isinstance(remember, ForSession):
        return None
    rule = RememberedRule(
        id=approval.id,
        rule=remember.rule,
        behavior="deny" if isinstance(decided.choice, Reject) else "allow",
        by=decided.by,
        at=decided.at,
    )
    if isinstance(remember, Always):
        return replace(rule, folder=remember.folder)
    return replace(rule, session=approval.session) if isinstance(remember, ForSession) else None


def event_of_rule(rule: RememberedRule) -> NewEvent:
    return sealed(RULE_ADDED, rule, rule.at)


class Listener:
    """A session's policy, as one that is told of rules. Held by who wants to be told."""

    def __init__(self, session: str, folder: str, apply: ApplyRule) -> None:
        self.session = session
        self.folder = folder
        self.apply = apply


class Remembered:
    """The remembered rules of a journal."""

    def __init__(self, journal: Journal, owners: Owners, now: Callable[[], float]) -> None:
        self._owners = owners
        self._now = now
        self._always = journal.bucket(REMEMBERED, RememberedRule)
        self._sessions: Projection[dict[str, RememberedRule]] = Projection(
            journal.log,
            journal.records,
            SESSION_RULES,
            dict[str, RememberedRule],
            start=lambda _: {},
            fold=_fold,
        )
        self._listeners: WeakSet[Listener] = WeakSet()
        #: In force, and not kept yet.
        self._fresh: dict[str, RememberedRule] = {}
        #: Whether a session's stream is not to be written to: nobody looks after it.
        self.is_asleep = False

    def tell(self, session: str, folder: str, apply: ApplyRule) -> Listener:
        """From now on `apply` is called for rules that cover the session or its folder, as long as
        the listener is held."""
        listener = Listener(session, folder, apply)
        self._listeners.add(listener)
        return listener

    async def always(self, folder: str | None = None) -> list[RememberedRule]:
        """Those for always that are in force; with a folder, those that cover it."""
        found = {document.key: document.value for document in await self._always.list()}
        return [
            rule
            for rule in {**self._fresh, **found}.values()
            if not rule.removed and (folder is None or rule.covers("", folder))
        ]

    async def of_session(self, session: str) -> list[RememberedRule]:
        """Those of the session that are in force."""
        rules = (await self._sessions.get(session)).state
        return [rule for rule in rules.values() if not rule.removed]

    async def remove(self, rule_id: str, by: Person) -> RememberedRule:
        """No longer have a rule for always."""
        only_a_person(by, f"whether rule {rule_id} is forgotten")
        if fresh := self._fresh.get(rule_id):
            with suppress(WrongRevision):  # it is just being kept
                await self._always.create(rule_id, fresh, Durability.POWER)
        found = await self._always.get(rule_id)
        if found is None:
            raise UnknownRule(rule_id)
        if found.value.removed:
            return found.value
        removed = replace(found.value, removed=Removal(by, self._now()))
        await self._always.put(rule_id, removed, found.revision, Durability.POWER)
        self._apply(removed)
        return removed

    async def remove_of_session(self, session: str, rule_id: str, by: Person) -> RememberedRule:
        """No longer have a rule of the session's."""
        if self.is_asleep:
            raise Asleep
        only_a_person(by, f"whether rule {rule_id} is forgotten")
        rule = (await self._sessions.get(session)).state.get(rule_id)
        if rule is None:
            raise UnknownRule(rule_id)
        if rule.removed:
            return rule
        removal = Removal(by, self._now())
        event = sealed(RULE_REMOVED, RuleRemoved(rule_id, removal), removal.at)
        await asyncio.shield(self._owners.of(session).append([event], Durability.POWER))
        removed = replace(rule, removed=removal)
        self._apply(removed)
        return removed

    def added(self, rule: RememberedRule) -> None:
        """The decision that has it remembered is stored, so it is in force."""
        if rule.session is None:
            self._fresh[rule.id] = rule
        self._apply(rule)

    async def keep(self, approval: Approval) -> None:
        """Have a record of the rule for always that was decided, if there was none yet; one that
        was removed stays removed. The log has the decision: it can be done at any time."""
        rule = rule_of(approval, approval.decision) if approval.decision else None
        if rule and rule.session is None:
            with suppress(WrongRevision):  # it is there
                await self._always.create(rule.id, rule, Durability.POWER)
            self._fresh.pop(rule.id, None)

    def _apply(self, rule: RememberedRule) -> None:
        for listener in list(self._listeners):
            if rule.covers(listener.session, listener.folder):
                try:
                    listener.apply(rule)
                except Exception:  # noqa: BLE001 - the decision stands, whatever it is
                    _log.exception("the rule %s was not applied", rule.rule)


def _fold(rules: dict[str, RememberedRule], event: Event) -> dict[str, RememberedRule]:
    if event.kind not in _RULES:
        return rules
    told = _RULES[event.kind].decode(event.body)
    if isinstance(told, RememberedRule):
        return {**rules, told.id: told}
    rule = rules.get(told.id)
    return {**rules, told.id: replace(rule, removed=told.removal)} if rule else rules
