"""What a session and all below it may use, and what is left of it.

Owns the sums; does not pause, ask or store anything. Pure: the time is given. docs/states.md says
what each measure counts.

A session's use is its own and that of all below it, living or ended. A child that lives has the
rest of its limit reserved from its parent: nobody else can use that. When it ends, what it did not
use is the parent's again. A child without a limit shares what the nearest limited ancestor has
left. Time is not reserved: those below run at the same time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal, TypeAlias, get_args

from msgspec import Struct
from msgspec.structs import replace

from ..errors import BudgetTooSmall, InvalidLimit, NotPossible
from ..views.stream import Limits
from .lineage import Family, Orphans
from .record import SessionRecord
from .states import is_live

Measure: TypeAlias = Literal["turns", "cost", "seconds", "tokens", "concurrency"]
MEASURES: tuple[Measure, ...] = get_args(Measure)
#: What can run out; how many live at a time can't, it only keeps others from being started.
_USED_UP: tuple[Measure, ...] = ("turns", "cost", "seconds", "tokens")

_FIELDS: dict[Measure, str] = {m: "cost_usd" if m == "cost" else m for m in MEASURES}

#: Clocks are no finer than this, and a timer may ring as much too early.
_TICK = 0.001

#: Whole numbers, except for seconds. Money is in millionths of a dollar.
Number: TypeAlias = float


class _Account(Struct, frozen=True):
    """What the ledger has counted of a session."""

    lineage: tuple[str, ...]
    limits: Limits
    turns: int
    cost: int
    tokens: int
    seconds: float
    clocked_since: float | None
    is_live: bool


class Reached(Struct, frozen=True, kw_only=True):
    """A limit that was reached. `session` is whose it is: one's own or an ancestor's."""

    session: str
    measure: Measure
    words: str


class Left(Struct, frozen=True, kw_only=True):
    """What a session can still use itself; None where nothing limits it."""

    turns: int | None = None
    cost_usd: float | None = None
    seconds: float | None = None
    tokens: int | None = None
    concurrency: int | None = None


class Ledger:
    """The use of all sessions. `put` is called whenever a session's use, limits, state or lineage
    changes, and takes time in proportion to its depth."""

    def __init__(self, family: Family) -> None:
        self._family = family
        self._accounts: dict[str, _Account] = {}
        self._below: dict[str, dict[Measure, int]] = {}

    def put(self, record: SessionRecord) -> None:
        """The family gets the record too."""
        self._family.put(record)
        known = self._accounts.get(record.id)
        usage = record.usage
        account = _Account(
            record.lineage, record.limits, record.turns, usage.micros, usage.counted_tokens,
            record.seconds, record.clocked_since, is_live(record.state),
        )  # fmt: skip
        if known != account:
            if known:
                self._count(known, -1)
            self._count(account, 1)
            self._accounts[record.id] = account

    def drop(self, session: str) -> None:
        """It was deleted, and what it used is forgotten: see `check_delete`."""
        self._family.drop(session)
        account = self._accounts.pop(session, None)
        if account:
            self._count(account, -1)

    # --- what is used and left

    def used(self, session: str, measure: Measure, now: float) -> Number:
        """By itself and all below it; of time, by itself."""
        account = self._accounts[session]
        if measure == "seconds":
            since = account.clocked_since
            return account.seconds + (max(now - since, 0) if since is not None else 0)
        if measure == "concurrency":
            return self._family.count_below(session)
        own: int = getattr(account, measure)
        return own + self._below.get(session, {}).get(measure, 0)

    def reserved(self, session: str, measure: Measure, now: float) -> Number:
        """What is promised to those that live below it, and not used by them yet."""
        if measure == "seconds":
            return 0
        found: Number = 0
        for name in self._family.live_below(session):
            limit = self._limit(name, measure)
            if limit is not None and self._holder(name, measure, until=session) is None:
                found += max(limit - self.used(name, measure, now), 0)
        return found

    def left(self, session: str, now: float) -> Left:
        """What it can still use itself: of its own limits, or of those that it shares."""
        amounts = {measure: self._left(session, measure, now) for measure in MEASURES}
        cost = amounts.pop("cost")
        whole = {m: None if n is None else max(n, 0) for m, n in amounts.items()}
        return Left(
            turns=_whole(whole["turns"]),
            cost_usd=None if cost is None else max(cost, 0) / 1_000_000,
            seconds=whole["seconds"],
            tokens=_whole(whole["tokens"]),
            concurrency=_whole(whole["concurrency"]),
        )

    def reached(self, session: str, now: float) -> Reached | None:
        """The first limit that keeps it from going on: its own, or the nearest ancestor's."""
        for measure in _USED_UP:
            is_first = True
            for holder in self._holders(session, measure):
                limit = self._limit(holder, measure)
                assert limit is not None
                used = self.used(holder, measure, now)
                # What an ancestor has reserved for us is ours, be the ancestor's own rest gone.
                reserved = self.reserved(holder, measure, now) if is_first else 0
                slack = _TICK if measure == "seconds" else 0
                if used + reserved >= limit - slack:
                    words = _told(measure, used, limit, reserved)
                    return Reached(session=holder, measure=measure, words=words)
                is_first = False
        return None

    def next_deadline(self, now: float) -> float | None:
        """When the next limit of time will be reached. Those that have been are not in it."""
        deadlines = (
            account.clocked_since + account.limits.seconds - account.seconds
            for account in self._accounts.values()
            if account.clocked_since is not None and account.limits.seconds is not None
        )
        return min((d for d in deadlines if d - _TICK > now), default=None)

    # --- what fits

    def check_birth(self, lineage: tuple[str, ...], limits: Limits, now: float) -> None:
        """Raise `BudgetTooSmall` unless a child with these limits fits below these ancestors."""
        check_limits(limits)
        self._check_fits(lineage, limits, now, None)

    def check_start(self, session: str, now: float) -> None:
        """The same for one that has ended and is to run again: it needs the rest of its limits."""
        account = self._accounts[session]
        self._check_fits(account.lineage, account.limits, now, session)

    def check_change(self, session: str, limits: Limits, now: float) -> None:
        """The same for one that is to have other limits."""
        check_limits(limits)
        self._check_fits(self._accounts[session].lineage, limits, now, session)

    def _check_fits(
        self, lineage: tuple[str, ...], limits: Limits, now: float, session: str | None
    ) -> None:
        for measure in MEASURES:
            limit = _of(limits, measure)
            used = self.used(session, measure, now) if session else 0
            wanted = None if limit is None else max(limit - used, 0)
            for holder in self._holders_in(lineage, measure):
                left = self._left_at(holder, measure, now) + self._given(session, measure, now)
                if not _fits(measure, wanted, left):
                    raise _too_small(measure, wanted, left, holder)
                if measure != "seconds":
                    break  # what is further up was reserved for this one

    def _given(self, session: str | None, measure: Measure, now: float) -> Number:
        """What is held for a session already: it may have that again."""
        if session is None or not self._accounts[session].is_live or measure == "seconds":
            return 0
        limit = self._limit(session, measure)
        itself = 1 if measure == "concurrency" else 0
        rest = 0 if limit is None else max(limit - self.used(session, measure, now), 0)
        return itself + rest

    def check_delete(self, session: str) -> None:
        """Raise `NotPossible` while what it used counts for one that lives: it would be forgotten,
        and could be used again."""
        account = self._accounts[session]
        for name in reversed(account.lineage):
            if self._family.is_live(name) and self._accounts[name].limits != Limits():
                hint = f"its use counts for the budget of session {name}: wait until that has ended"
                raise NotPossible("delete", self._family.get(session).state, hint, session)

    def shares(self, orphans: Orphans, now: float) -> dict[str, Limits]:
        """The limits that sessions need when they are handed over; to be asked before they are.

        Where they shared a limit of one that ends, that would be gone for them: each gets an equal
        part of what is left, on top of what it has used.
        """
        moved = {move.id: move.lineage for move in orphans.moves}
        found: dict[str, Limits] = {}
        for name, kept in moved.items():
            account = self._accounts[name]
            if account.lineage[-1] in kept:
                continue  # it moves together with its parent
            own = {m: self._share(name, m, moved, now) for m in MEASURES}
            given = {_FIELDS[m]: limit for m, limit in own.items() if limit is not None}
            if given:
                found[name] = replace(account.limits, **given)
        return found

    def _share(
        self, session: str, measure: Measure, moved: dict[str, tuple[str, ...]], now: float
    ) -> Number | None:
        """The limit for one that is moved, if it had it from one that is not above it any more."""
        holder = next(self._holders(session, measure), session)
        if holder == session or holder in moved[session]:
            return None
        left = max(self._left_at(holder, measure, now), 0)
        if measure != "seconds":
            left //= sum(
                1
                for name, kept in moved.items()
                if self._accounts[name].lineage[-1] not in kept
                and next(self._holders(name, measure), None) == holder
            )
        limit = self.used(session, measure, now) + left
        return limit / 1_000_000 if measure == "cost" else limit

    # --- limits, from one's own upwards

    def _limit(self, session: str, measure: Measure) -> Number | None:
        account = self._accounts.get(session)
        return None if account is None else _of(account.limits, measure)

    def _holders(self, session: str, measure: Measure) -> Iterator[str]:
        """Itself and its ancestors, the nearest first, where they have a limit."""
        yield from self._holders_in((*self._accounts[session].lineage, session), measure)

    def _holders_in(self, lineage: tuple[str, ...], measure: Measure) -> Iterator[str]:
        return (name for name in reversed(lineage) if self._limit(name, measure) is not None)

    def _holder(self, session: str, measure: Measure, *, until: str) -> str | None:
        """One that lives and has a limit, between a session and an ancestor of it."""
        lineage = self._accounts[session].lineage
        between = lineage[lineage.index(until) + 1 :]
        live = (n for n in between if self._family.is_live(n))
        return next((n for n in live if self._limit(n, measure) is not None), None)

    def _left(self, session: str, measure: Measure, now: float) -> Number | None:
        found = [self._left_at(name, measure, now) for name in self._holders(session, measure)]
        if measure == "seconds":
            return min(found, default=None)
        return found[0] if found else None

    def _left_at(self, holder: str, measure: Measure, now: float) -> Number:
        limit = self._limit(holder, measure)
        assert limit is not None
        return limit - self.used(holder, measure, now) - self.reserved(holder, measure, now)

    def _count(self, account: _Account, sign: int) -> None:
        for ancestor in account.lineage:
            sums = self._below.setdefault(ancestor, {})
            for measure in ("turns", "cost", "tokens"):
                sums[measure] = sums.get(measure, 0) + sign * getattr(account, measure)


# --- numbers and words


def check_limits(limits: Limits) -> None:
    """Raise `InvalidLimit` where one is no limit."""
    for measure in MEASURES:
        limit = _of(limits, measure)
        if limit is None:
            continue
        if not math.isfinite(limit):
            raise InvalidLimit(measure, limit, "give a number, or none for no limit")
        if limit < 0 or (limit == 0 and measure != "concurrency"):
            raise InvalidLimit(measure, limit, "give more than 0, or none for no limit")


def _of(limits: Limits, measure: Measure) -> Number | None:
    if measure != "cost":
        limit: Number | None = getattr(limits, measure)
        return limit
    cost = limits.cost_usd
    if cost is None or not math.isfinite(cost):
        return cost
    return round(cost * 1_000_000)


def _whole(number: Number | None) -> int | None:
    return None if number is None else int(number)


def _fits(measure: Measure, wanted: Number | None, left: Number) -> bool:
    match measure:
        case "concurrency":
            return (wanted or 0) + 1 <= left
        case "seconds":
            return left > 0 if wanted is None else wanted <= left + _TICK
        case _:
            # Something must remain: who gives all of it away is at its limit at once.
            return left > (wanted or 0)


def _told(measure: Measure, used: Number, limit: Number, reserved: Number) -> str:
    match measure:
        case "cost":
            words = f"used {_dollars(used)} of {_dollars(limit)}"
            kept = _dollars(reserved)
        case "seconds":
            words, kept = f"used {used:,.0f} s of {limit:,.0f} s", ""
        case _:
            words, kept = f"used {used:,} of {limit:,} {measure}", f"{reserved:,}"
    return f"{words}, and {kept} reserved for sessions below it" if reserved else words


def _dollars(micros: Number) -> str:
    """Cents, and finer where there are no whole ones."""
    usd = micros / 1_000_000
    return f"${usd:,.2f}" if not micros or micros >= 10_000 else f"${usd:.6f}".rstrip("0")


def _too_small(
    measure: Measure, wanted: Number | None, left: Number, holder: str
) -> BudgetTooSmall:
    left = max(left, 0)
    unit = 1_000_000 if measure == "cost" else 1
    amounts = [_amount(measure, n) for n in (wanted or 0, left)]
    if wanted is None or measure == "concurrency":
        words = f"session {holder} has {amounts[1]} left; raise its limit, or end what uses it"
    else:
        words = (
            f"{amounts[0]} does not fit: session {holder} has {amounts[1]} left and needs some of"
            " it itself; ask for less, or raise its limit"
        )
    asked = None if wanted is None else wanted / unit
    return BudgetTooSmall(measure, asked, left / unit, holder, words)


def _amount(measure: Measure, number: Number) -> str:
    match measure:
        case "cost":
            return _dollars(number)
        case "seconds":
            return f"{number:,.0f} s"
        case "concurrency":
            return f"room for {number:,} sessions"
        case _:
            return f"{number:,} {measure}"
