"""What a session may use is taken from what its ancestors may."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridle.errors import BudgetTooSmall, InvalidLimit, NotPossible
from bridle.supervisor.budgets import Ledger, check_limits
from bridle.supervisor.lineage import Family, orphans_of
from bridle.views import stream
from bridle.views.stream import Limits
from tests.levels import tries

from .streams import Tape, session

NOW = 1010.0


class Ledgers:
    """A family whose members are idle since 1002, and what they used."""

    def __init__(self) -> None:
        self.family = Family()
        self.ledger = Ledger(self.family)
        self.tapes: dict[str, Tape] = {}

    def add(self, name: str, *ancestors: str, rule: str = "stop", **limits: Any) -> Tape:
        tape = session(name, *ancestors, limits=Limits(**limits), orphans=rule)
        self.tapes[name] = tape
        self.ledger.put(tape.record)
        return tape

    def use(self, name: str, *, dollars: float = 0.0, tokens: int = 0) -> None:
        """One turn, and the total after it."""
        models = {"m": {"inputTokens": tokens}} if tokens else {}
        self.tapes[name].result(total_cost_usd=dollars, modelUsage=models)
        self.ledger.put(self.tapes[name].record)

    def tell(self, name: str, kind: str, **fields: Any) -> None:
        self.tapes[name].tell(kind, **fields)
        self.ledger.put(self.tapes[name].record)

    def end(self, name: str) -> None:
        self.tell(name, stream.ENDED, how="exited", code=0)

    def words(self, name: str, now: float = NOW) -> str | None:
        reached = self.ledger.reached(name, now)
        return f"{reached.session}: {reached.words}" if reached else None


@pytest.fixture
def all_() -> Ledgers:
    return Ledgers()


# --- one session


def test_without_limits_nothing_is_reached(all_: Ledgers) -> None:
    all_.add("a")
    all_.use("a", dollars=1e6, tokens=10**9)
    left = all_.ledger.left("a", NOW)
    assert (left.turns, left.cost_usd, left.seconds, left.tokens, left.concurrency) == (None,) * 5
    assert all_.words("a", 1e9) is None


def test_what_is_reached_is_told_in_words(all_: Ledgers) -> None:
    all_.add("a", cost_usd=1.0)
    all_.use("a", dollars=0.99)
    assert all_.words("a") is None
    all_.use("a", dollars=1.02)
    assert all_.words("a") == "a: used $1.02 of $1.00"
    reached = all_.ledger.reached("a", NOW)
    assert reached
    assert (reached.session, reached.measure) == ("a", "cost")


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"turns": 2}, "used 2 of 2 turns"),
        ({"tokens": 1500}, "used 2,000 of 1,500 tokens"),
        ({"cost_usd": 0.0005}, "used $0.0006 of $0.0005"),
        ({"seconds": 8.0}, "used 8 s of 8 s"),
    ],
)
def test_each_measure_has_its_words(all_: Ledgers, limits: dict[str, Any], words: str) -> None:
    all_.add("a", **limits)
    all_.use("a", dollars=0.0003, tokens=1000)
    all_.use("a", dollars=0.0006, tokens=2000)
    assert all_.words("a") == f"a: {words}"


def test_raising_the_limit_lets_it_go_on(all_: Ledgers) -> None:
    all_.add("a", turns=1)
    all_.use("a")
    assert all_.words("a") == "a: used 1 of 1 turns"
    all_.ledger.check_change("a", Limits(turns=2), NOW)
    all_.tell("a", stream.BUDGET, limits=Limits(turns=2))
    assert all_.words("a") is None
    assert all_.ledger.left("a", NOW).turns == 1


def test_many_small_sums_reach_the_limit_exactly(all_: Ledgers) -> None:
    all_.add("a", cost_usd=1.0)
    for turn in range(1, 11):
        all_.use("a", dollars=sum([0.1] * turn))
        assert (all_.words("a") is None) == (turn < 10)


# --- time


def test_time_counts_only_at_work(all_: Ledgers) -> None:
    all_.add("a", seconds=10.0)
    assert all_.ledger.left("a", 1005.0).seconds == 7
    all_.tell("a", stream.PAUSED, cause="person")  # at 1005
    assert all_.ledger.left("a", 9999.0).seconds == 7
    assert all_.ledger.next_deadline(1006.0) is None
    all_.tell("a", stream.UNPAUSED, cause="person")  # at 1006
    assert all_.ledger.next_deadline(1006.0) == 1013


def test_one_timer_serves_all(all_: Ledgers) -> None:
    for name, seconds in (("a", 30.0), ("b", 10.0), ("c", 20.0)):
        all_.add(name, seconds=seconds)
    seen = []
    now = 1003.0
    while (deadline := all_.ledger.next_deadline(now)) is not None:
        now = deadline
        seen.append([name for name in all_.tapes if all_.words(name, now)])
    assert seen == [["b"], ["b", "c"], ["a", "b", "c"]]


@given(st.floats(1e9, 2e9), st.floats(0.01, 1e6))
@settings(max_examples=tries(100, 1_000), deadline=None)
def test_a_limit_of_time_is_reached_when_its_timer_rings(start: float, seconds: float) -> None:
    ledgers = Ledgers()
    tape = Tape("a", limits=Limits(seconds=seconds))
    tape.at = start
    tape.run()
    ledgers.ledger.put(tape.record)
    deadline = ledgers.ledger.next_deadline(start)
    if deadline is not None:
        assert ledgers.words("a", deadline)
        assert ledgers.ledger.next_deadline(deadline) is None


def test_an_ancestors_time_is_over_for_all_below(all_: Ledgers) -> None:
    all_.add("a", seconds=5.0)
    all_.add("b", "a")
    assert all_.words("b", 1006.0) is None
    assert all_.words("b", 1007.0) == "a: used 5 s of 5 s"


def test_a_child_must_be_done_before_its_ancestors_time_is_over(all_: Ledgers) -> None:
    all_.add("a", seconds=20.0)
    all_.add("b", "a")
    all_.ledger.check_birth(("a", "b"), Limits(seconds=12.0), NOW)
    with pytest.raises(BudgetTooSmall, match="13 s does not fit: session a has 12 s left"):
        all_.ledger.check_birth(("a", "b"), Limits(seconds=13.0), NOW)
    with pytest.raises(BudgetTooSmall, match="session a has 0 s left; raise its limit"):
        all_.ledger.check_birth(("a", "b"), Limits(), 1022.0)


# --- down the tree


def test_a_childs_limit_is_reserved_from_its_parent(all_: Ledgers) -> None:
    all_.add("a", cost_usd=10.0)
    all_.use("a", dollars=2.0)
    all_.add("b", "a", cost_usd=5.0)
    assert all_.ledger.left("a", NOW).cost_usd == 3
    all_.use("b", dollars=1.0)
    assert (all_.ledger.left("a", NOW).cost_usd, all_.ledger.left("b", NOW).cost_usd) == (3, 4)
    with pytest.raises(
        BudgetTooSmall, match=r"\$3.00 does not fit: session a has \$3.00"
    ) as caught:
        all_.ledger.check_birth(("a",), Limits(cost_usd=3.0), NOW)
    assert (caught.value.measure, caught.value.session) == ("cost", "a")
    assert (caught.value.wanted, caught.value.left) == (3, 3)
    all_.ledger.check_birth(("a",), Limits(cost_usd=2.99), NOW)


def test_what_is_reserved_for_several_children_is_a_sum(all_: Ledgers) -> None:
    all_.add("a", cost_usd=10.0)
    for name, dollars in (("b", 1.0), ("c", 2.0), ("d", 4.0)):
        all_.add(name, "a", cost_usd=dollars)
    assert all_.ledger.reserved("a", "cost", NOW) == 7_000_000
    assert all_.ledger.left("a", NOW).cost_usd == 3
    all_.use("c", dollars=0.5)
    assert all_.ledger.left("a", NOW).cost_usd == 3
    all_.end("d")
    assert all_.ledger.left("a", NOW).cost_usd == 7


def test_only_the_nearest_who_has_a_limit_is_asked_but_of_time_all_are(all_: Ledgers) -> None:
    all_.add("a", cost_usd=5.0, seconds=100.0)
    all_.add("b", "a", cost_usd=4.0, seconds=500.0)
    # Of a's money all but a dollar is b's: what fits into that needs none of a's.
    all_.ledger.check_birth(("a", "b"), Limits(cost_usd=3.0), NOW)
    with pytest.raises(BudgetTooSmall) as caught:
        all_.ledger.check_birth(("a", "b"), Limits(cost_usd=4.5), NOW)
    assert (caught.value.measure, caught.value.session) == ("cost", "b")
    with pytest.raises(BudgetTooSmall) as caught:
        all_.ledger.check_birth(("a", "b"), Limits(seconds=300.0), NOW)
    assert (caught.value.measure, caught.value.session) == ("seconds", "a")


def test_what_an_ended_child_did_not_use_is_the_parents_again(all_: Ledgers) -> None:
    all_.add("a", turns=10)
    all_.add("b", "a", turns=8)
    all_.use("b")
    assert all_.ledger.left("a", NOW).turns == 2
    all_.end("b")
    assert all_.ledger.left("a", NOW).turns == 9


def test_an_ended_child_needs_room_to_run_again(all_: Ledgers) -> None:
    all_.add("a", turns=10)
    all_.add("b", "a", turns=8)
    all_.end("b")
    all_.ledger.check_start("b", NOW)
    all_.add("c", "a", turns=5)
    with pytest.raises(BudgetTooSmall, match="8 turns does not fit: session a has 5 turns left"):
        all_.ledger.check_start("b", NOW)


def test_a_parent_that_has_reserved_its_rest_is_at_its_limit_and_its_child_is_not(
    all_: Ledgers,
) -> None:
    all_.add("a", turns=3)
    all_.add("b", "a", turns=2)
    all_.use("a")
    assert all_.words("a") == "a: used 1 of 3 turns, and 2 reserved for sessions below it"
    assert all_.words("b") is None
    all_.use("b")
    all_.use("b")
    assert all_.words("b") == "b: used 2 of 2 turns"


def test_a_child_without_a_limit_shares_what_is_left(all_: Ledgers) -> None:
    all_.add("a", tokens=1000)
    all_.add("b", "a")
    all_.add("c", "a", "b")
    all_.use("c", tokens=600)
    assert all_.ledger.left("b", NOW).tokens == 400
    all_.use("b", tokens=400)
    assert [all_.words(name) for name in "abc"] == ["a: used 1,000 of 1,000 tokens"] * 3
    with pytest.raises(BudgetTooSmall, match="session a has 0 tokens left; raise its limit"):
        all_.ledger.check_birth(("a", "b"), Limits(), NOW)


def test_what_is_reserved_below_a_child_that_shares_counts_for_who_has_the_limit(
    all_: Ledgers,
) -> None:
    all_.add("a", turns=10)
    all_.add("b", "a")
    all_.add("c", "a", "b", turns=6)
    assert all_.ledger.left("a", NOW).turns == 4
    assert all_.ledger.left("b", NOW).turns == 4
    all_.add("d", "a", "b", "c", turns=5)
    assert all_.ledger.left("a", NOW).turns == 4
    assert all_.ledger.left("c", NOW).turns == 1


def test_a_lowered_limit_of_an_ancestor_is_reached_by_all(all_: Ledgers) -> None:
    all_.add("a", turns=10)
    all_.add("b", "a", turns=5)
    all_.use("b")
    all_.use("b")
    all_.tell("a", stream.BUDGET, limits=Limits(turns=2))
    assert all_.words("b") == "a: used 2 of 2 turns"


def test_a_child_may_be_given_more_as_far_as_its_parent_has_it(all_: Ledgers) -> None:
    all_.add("a", turns=10)
    all_.add("b", "a", turns=4)
    all_.use("b")
    all_.ledger.check_change("b", Limits(turns=9), NOW)
    with pytest.raises(BudgetTooSmall, match="9 turns does not fit: session a has 9 turns left"):
        all_.ledger.check_change("b", Limits(turns=10), NOW)
    all_.ledger.check_change("b", Limits(), NOW)


# --- how many at a time


def test_concurrency_is_how_many_live_below(all_: Ledgers) -> None:
    all_.add("a", concurrency=3)
    all_.add("b", "a")
    all_.add("c", "a", "b")
    all_.ledger.check_birth(("a", "b", "c"), Limits(), NOW)
    with pytest.raises(BudgetTooSmall, match="session a has room for 1 sessions left"):
        all_.ledger.check_birth(("a",), Limits(concurrency=1), NOW)
    all_.add("d", "a")
    with pytest.raises(BudgetTooSmall, match="session a has room for 0 sessions left"):
        all_.ledger.check_birth(("a", "b"), Limits(), NOW)
    assert all_.words("a") is None
    all_.end("d")
    assert all_.ledger.left("b", NOW).concurrency == 1


def test_places_below_a_child_are_reserved_too(all_: Ledgers) -> None:
    all_.add("a", concurrency=4)
    all_.add("b", "a", concurrency=2)
    assert all_.ledger.left("a", NOW).concurrency == 1
    all_.add("c", "a", "b")
    assert all_.ledger.left("a", NOW).concurrency == 1
    assert all_.ledger.left("b", NOW).concurrency == 1
    all_.ledger.check_change("b", Limits(concurrency=3), NOW)
    with pytest.raises(BudgetTooSmall):
        all_.ledger.check_change("b", Limits(concurrency=4), NOW)


# --- when a parent ends


def test_who_shared_gets_a_part_of_what_is_left_when_handed_over(all_: Ledgers) -> None:
    all_.add("a", rule="hand over", turns=10, cost_usd=1.0, seconds=60.0)
    all_.add("b", "a")
    all_.add("c", "a", cost_usd=0.5)
    all_.add("d", "a", "b")
    all_.use("b", dollars=0.2)
    orphans = orphans_of("a", all_.family)
    assert [move.id for move in orphans.moves] == ["c", "b", "d"]
    shares = all_.ledger.shares(orphans, 1012.0)
    assert shares == {
        "b": Limits(turns=5, cost_usd=0.5, seconds=60.0),
        "c": Limits(turns=4, cost_usd=0.5, seconds=60.0),
    }


def test_who_has_a_limit_or_another_to_share_needs_no_part(all_: Ledgers) -> None:
    all_.add("r", turns=10)
    all_.add("a", "r", rule="hand over")
    all_.add("b", "r", "a")
    all_.add("c", "r", "a", turns=2)
    assert all_.ledger.shares(orphans_of("a", all_.family), NOW) == {}


def test_use_moves_with_who_is_handed_over(all_: Ledgers) -> None:
    all_.add("r", turns=10)
    all_.add("a", "r", rule="hand over")
    all_.add("b", "r", "a")
    all_.use("b")
    all_.end("a")
    all_.tell("b", stream.HANDED_OVER, lineage=("r",))
    assert (all_.ledger.used("r", "turns", NOW), all_.ledger.used("a", "turns", NOW)) == (1, 0)


def test_what_counts_for_a_living_budget_is_not_deleted(all_: Ledgers) -> None:
    all_.add("a", turns=10)
    all_.add("b", "a")
    all_.use("b")
    all_.end("b")
    with pytest.raises(NotPossible, match="its use counts for the budget of session a"):
        all_.ledger.check_delete("b")
    all_.end("a")
    all_.ledger.check_delete("b")
    all_.ledger.drop("b")
    assert all_.ledger.used("a", "turns", NOW) == 0
    assert "b" not in all_.family


# --- whatever happens


@pytest.mark.parametrize(
    ("limits", "measure"),
    [
        (Limits(turns=0), "turns"),
        (Limits(turns=-1), "turns"),
        (Limits(cost_usd=float("nan")), "cost"),
        (Limits(cost_usd=float("inf")), "cost"),
        (Limits(seconds=-0.5), "seconds"),
        (Limits(concurrency=-1), "concurrency"),
    ],
)
def test_what_is_no_limit_is_refused(limits: Limits, measure: str) -> None:
    with pytest.raises(InvalidLimit, match=f"for {measure}: give") as caught:
        check_limits(limits)
    assert caught.value.measure == measure
    check_limits(Limits(concurrency=0, turns=1))


@given(st.data())
@settings(max_examples=tries(10, 60), deadline=None)
def test_as_long_as_each_keeps_to_its_own_limit_no_ancestors_limit_is_passed(
    data: st.DataObject,
) -> None:
    """The promise of reserving: who has turns left may use them, whatever others do."""
    all_ = Ledgers()
    all_.add("s0", turns=data.draw(st.integers(1, 40)))
    names = count(1)
    for _ in range(data.draw(st.integers(0, 40))):
        name = data.draw(st.sampled_from(sorted(all_.tapes)))
        is_live = all_.family.is_live(name)
        match data.draw(st.sampled_from(["use", "use", "birth", "end"])):
            case "use" if is_live and all_.ledger.reached(name, NOW) is None:
                all_.use(name)
            case "birth" if is_live:
                turns = data.draw(st.none() | st.integers(1, 15))
                lineage = (*all_.family.ancestors(name), name)
                try:
                    all_.ledger.check_birth(lineage, Limits(turns=turns), NOW)
                except BudgetTooSmall:
                    continue
                all_.add(f"s{next(names)}", *lineage, turns=turns)
            case "end" if is_live and name != "s0" and not all_.family.count_below(name):
                all_.end(name)
        for one, tape in all_.tapes.items():
            limit = tape.record.limits.turns
            if limit is not None:
                assert all_.ledger.used(one, "turns", NOW) <= limit
                if all_.family.is_live(one):
                    left = all_.ledger.left(one, NOW).turns
                    assert left is not None
                    reserved = all_.ledger.reserved(one, "turns", NOW)
                    assert all_.ledger.used(one, "turns", NOW) + reserved + left == limit
