"""Who is below whom: how many there may be, and what becomes of those whose parent ends."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridle.errors import LimitReached, NotPossible, UnknownSession
from bridle.supervisor.lineage import (
    Family,
    LineageLimits,
    Move,
    check_birth,
    lineage_below,
    orphans_of,
)
from bridle.supervisor.record import SessionRecord
from bridle.views.stream import OrphanRule, State
from tests.levels import tries
from tests.operations import operations


def known(
    name: str, *lineage: str, state: State = "idle", rule: OrphanRule = "stop"
) -> SessionRecord:
    parent = lineage[-1] if lineage else None
    return SessionRecord(id=name, lineage=lineage, parent=parent, state=state, orphans=rule)


def family(*records: SessionRecord) -> Family:
    found = Family()
    for record in records:
        found.put(record)
    return found


def test_people_may_start_as_many_as_they_like() -> None:
    check_birth(None, Family(), LineageLimits(depth=0, children=0, per_root=0))


def test_a_family_is_known_in_whatever_order_it_comes() -> None:
    found = family(known("c", "a", "b"), known("b", "a"), known("a"), known("d", "a", state="lost"))
    assert found.ancestors("c") == ("a", "b")
    assert found.descendants("a") == {"b", "c", "d"}
    assert found.live_below("a") == {"b", "c"}
    assert [member.id for member in found.live_children("a")] == ["b"]
    assert lineage_below("c", found) == ("a", "b", "c")
    assert lineage_below(None, found) == ()
    assert ("d" in found, "e" in found, len(found)) == (True, False, 4)


def test_a_session_that_is_not_known_is_an_error() -> None:
    with pytest.raises(UnknownSession, match="no session x") as caught:
        check_birth("x", Family())
    assert caught.value.session == "x"


def test_an_ended_session_has_no_more_children() -> None:
    with pytest.raises(NotPossible, match="while session a is failed; resume it first"):
        check_birth("a", family(known("a", state="failed")))


def test_the_tree_is_only_so_deep() -> None:
    found = family(known("a"), known("b", "a"), known("c", "a", "b"), known("d", "a", "b", "c"))
    check_birth("c", found)
    with pytest.raises(LimitReached, match="session d has reached its limit: depth 3; do the work"):
        check_birth("d", found)


def test_only_so_many_children_live_at_a_time() -> None:
    limits = LineageLimits(children=2)
    found = family(known("a"), known("b", "a"), known("c", "a"), known("d", "a", "b"))
    with pytest.raises(LimitReached, match="live children 2; wait until") as caught:
        check_birth("a", found, limits)
    assert (caught.value.limit, caught.value.value) == ("live children", 2)
    assert caught.value.session == "a"
    found.put(known("c", "a", state="stopped"))
    check_birth("a", found, limits)


def test_only_so_many_live_below_one_root() -> None:
    limits = LineageLimits(per_root=3)
    found = family(known("a"), known("b", "a"), known("c", "a"), known("d", "a", "b"))
    with pytest.raises(LimitReached, match="session a has reached its limit: live sessions below"):
        check_birth("d", found, limits)
    found.drop("c")
    found.drop("c")
    check_birth("d", found, limits)


# --- when a parent ends


def test_children_are_stopped_the_deepest_first() -> None:
    found = family(known("a"), known("b", "a"), known("c", "a", "b"), known("d", "a"))
    orphans = orphans_of("a", found)
    assert orphans.stop == ("c", "b", "d")
    assert orphans.moves == ()


def test_children_are_handed_over_to_the_nearest_ancestor_that_lives() -> None:
    found = family(
        known("a"), known("b", "a", state="lost"), known("c", "a", "b", rule="hand over"),
        known("d", "a", "b", "c"), known("e", "a", "b", "c", "d"),
    )  # fmt: skip
    orphans = orphans_of("c", found)
    assert orphans.stop == ()
    assert orphans.moves == (Move("d", ("a",)), Move("e", ("a", "d")))


def test_without_an_ancestor_children_are_handed_over_to_people() -> None:
    found = family(known("a", rule="hand over"), known("b", "a"))
    assert orphans_of("a", found).moves == (Move("b", ()),)


def test_each_parent_that_is_stopped_has_its_own_rule() -> None:
    found = family(
        known("r"), known("a", "r"), known("b", "r", "a", rule="hand over"), known("c", "r", "a"),
        known("d", "r", "a", "b"), known("e", "r", "a", "c"),
    )  # fmt: skip
    orphans = orphans_of("a", found)
    assert orphans.stop == ("e", "b", "c")
    assert orphans.moves == (Move("d", ("r",)),)


RULES: st.SearchStrategy[OrphanRule] = st.sampled_from(["stop", "hand over"])
STATES: st.SearchStrategy[State] = st.sampled_from(["idle", "idle", "idle", "stopped"])


@given(st.lists(st.tuples(st.integers(0, 30), RULES, STATES), min_size=1, max_size=25), st.data())
def test_after_a_parent_has_ended_nobody_is_below_one_that_is_gone(
    sessions: list[tuple[int, OrphanRule, State]], data: st.DataObject
) -> None:
    records: list[SessionRecord] = []
    for number, (place, rule, state) in enumerate(sessions):
        parent = records[place % number] if number else None
        lineage = (*parent.lineage, parent.id) if parent and place % 4 else ()
        records.append(known(f"s{number}", *lineage, rule=rule, state=state))
    found = family(*records)
    ended = data.draw(st.sampled_from(records)).id
    orphans = orphans_of(ended, found)
    gone = {ended, *orphans.stop}
    below = found.live_below(ended)
    assert set(orphans.stop) <= below
    for record in records:
        if record.id in gone:
            record.state = "stopped"
    for move in orphans.moves:
        record = next(one for one in records if one.id == move.id)
        assert record.id not in gone
        record.lineage = move.lineage
    after = family(*records)
    for record in records:
        if record.id in below - gone:
            assert all(after.is_live(name) for name in record.lineage)


# --- many


def test_ten_thousand_sessions_take_no_time_that_grows_with_their_number() -> None:
    found = family(known("root"))

    def born(number: int) -> None:
        check_birth("root", found)
        found.put(known(f"s{number}", "root"))
        found.put(known(f"s{number}", "root", state="stopped"))

    first = operations(lambda: born(0))
    for number in range(1, 10_000):
        born(number)
    assert operations(lambda: born(10_000)) == first


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 7), STATES, st.booleans())))
@settings(max_examples=tries(100, 1_000), deadline=None)
def test_the_index_is_what_counting_would_give(
    steps: list[tuple[int, int, State, bool]],
) -> None:
    found = Family()
    records: dict[str, SessionRecord] = {}
    for number, above, state, is_dropped in steps:
        name = f"s{number}"
        if is_dropped and name in records:
            del records[name]
            found.drop(name)
            continue
        lineage = tuple(f"s{n}" for n in range(above) if n < number)
        records[name] = known(name, *lineage, state=state)
        found.put(records[name])
    for name in [f"s{n}" for n in range(8)]:
        below = {r.id for r in records.values() if name in r.lineage}
        assert found.descendants(name) == below
        assert found.live_below(name) == {n for n in below if records[n].state == "idle"}
