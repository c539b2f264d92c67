"""Who is whose child, how many there may be, and what becomes of those whose parent ends.

Owns the tree as an index over records, and the limits on its shape; does not store or stop
anything. Pure. What a session may use is in `budgets`.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ..errors import LimitReached, NotPossible, UnknownSession
from ..views.stream import OrphanRule, State
from .record import SessionRecord
from .states import is_live


class LineageLimits(Struct, frozen=True, kw_only=True):
    """How many sessions agents may start. What people start is not limited by these."""

    #: How many ancestors a session may have.
    depth: int = 3
    #: How many children of one session may live at a time.
    children: int = 8
    #: How many sessions below one root may live at a time, at all depths.
    per_root: int = 32


class Member(Struct, frozen=True):
    """What the index keeps of a session: records change, and it must know what it counted."""

    id: str
    lineage: tuple[str, ...]
    state: State
    orphans: OrphanRule

    @property
    def parent(self) -> str | None:
        return self.lineage[-1] if self.lineage else None

    @property
    def is_live(self) -> bool:
        return is_live(self.state)


class Move(Struct, frozen=True):
    """A session that has another lineage from now on: its questions go there, then to people."""

    id: str
    lineage: tuple[str, ...]


class Orphans(Struct, frozen=True):
    """What is to be done when a session has ended: stop these in this order, then move those."""

    stop: tuple[str, ...] = ()
    moves: tuple[Move, ...] = ()


class Family:
    """All sessions, by ancestor. `put` is called whenever a session's state or lineage changes, and
    takes time in proportion to its depth, however many there are."""

    def __init__(self) -> None:
        self._members: dict[str, Member] = {}
        self._below: dict[str, set[str]] = {}
        self._live_below: dict[str, set[str]] = {}

    def __contains__(self, session: str) -> bool:
        return session in self._members

    def __len__(self) -> int:
        return len(self._members)

    def put(self, record: SessionRecord) -> Member:
        known = self._members.get(record.id)
        member = Member(record.id, record.lineage, record.state, record.orphans)
        if known == member:
            return member
        if known:
            self._uncount(known)
        self._members[member.id] = member
        for ancestor in member.lineage:
            self._below.setdefault(ancestor, set()).add(member.id)
            if member.is_live:
                self._live_below.setdefault(ancestor, set()).add(member.id)
        return member

    def drop(self, session: str) -> None:
        """It was deleted, perhaps already. Those below it keep it in their lineage."""
        member = self._members.pop(session, None)
        if member:
            self._uncount(member)

    def get(self, session: str) -> Member:
        try:
            return self._members[session]
        except KeyError:
            raise UnknownSession(session) from None

    def is_live(self, session: str) -> bool:
        return session in self._members and self._members[session].is_live

    def ancestors(self, session: str) -> tuple[str, ...]:
        """The root first; the parent is the last."""
        return self.get(session).lineage

    def descendants(self, session: str) -> frozenset[str]:
        """All below it, also those that have ended."""
        return frozenset(self._below.get(session, ()))

    def live_below(self, session: str) -> frozenset[str]:
        return frozenset(self._live_below.get(session, ()))

    def count_below(self, session: str) -> int:
        """How many live below it."""
        return len(self._live_below.get(session, ()))

    def live_children(self, session: str) -> Iterator[Member]:
        for name in self._live_below.get(session, ()):
            member = self._members[name]
            if member.parent == session:
                yield member

    def _uncount(self, member: Member) -> None:
        for ancestor in member.lineage:
            self._below[ancestor].discard(member.id)
            if member.is_live:
                self._live_below[ancestor].discard(member.id)


def lineage_below(parent: str | None, family: Family) -> tuple[str, ...]:
    """The ancestors of a child of this one."""
    return (*family.get(parent).lineage, parent) if parent else ()


def check_birth(parent: str | None, family: Family, limits: LineageLimits | None = None) -> None:
    """Raise `LimitReached` if this session may have no more children; None are people."""
    if parent is None:
        return
    limits = limits or LineageLimits()
    member = family.get(parent)
    if not member.is_live:
        hint = "resume it first, or start the session without a parent"
        raise NotPossible("start a child", member.state, hint, parent)
    if len(member.lineage) + 1 > limits.depth:
        hint = "do the work in this session, or have it started further up"
        raise LimitReached("depth", limits.depth, parent, hint)
    _check_room((*member.lineage, parent), family, limits)


def check_start(session: str, family: Family, limits: LineageLimits | None = None) -> None:
    """The same for one that has ended and is to run again: it counts as one more."""
    lineage = family.get(session).lineage
    if lineage:
        _check_room(lineage, family, limits or LineageLimits(), session)


def _check_room(
    lineage: tuple[str, ...], family: Family, limits: LineageLimits, besides: str = ""
) -> None:
    """Whether one more may live there, `besides` itself."""
    root, parent = lineage[0], lineage[-1]
    children = sum(1 for child in family.live_children(parent) if child.id != besides)
    if children >= limits.children:
        hint = "wait until one of them has ended, or stop one"
        raise LimitReached("live children", limits.children, parent, hint)
    if len(family.live_below(root) - {besides}) >= limits.per_root:
        hint = "wait until one of those below it has ended, or stop one"
        raise LimitReached("live sessions below one root", limits.per_root, root, hint)


def orphans_of(session: str, family: Family) -> Orphans:
    """What becomes of those below a session that has ended, or is about to.

    Its own rule holds for its children; where that stops one, the rule of that one holds for its
    children in turn. Who is handed over goes to the nearest ancestor that lives on.
    """
    gone = {session}
    pending = [family.get(session)]
    while pending:
        parent = pending.pop()
        if parent.orphans == "stop":
            children = list(family.live_children(parent.id))
            gone.update(child.id for child in children)
            pending += children
    below = [family.get(name) for name in family.live_below(session)]
    below.sort(key=lambda member: (-len(member.lineage), member.id))
    moves = []
    for member in reversed(below):  # from the top, so that nobody is moved below one who is not yet
        kept = tuple(a for a in member.lineage if a not in gone and family.is_live(a))
        if member.id not in gone and kept != member.lineage:
            moves.append(Move(member.id, kept))
    return Orphans(tuple(member.id for member in below if member.id in gone), tuple(moves))
