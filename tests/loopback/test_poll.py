"""What a poll gives, when it answers, and from where it goes on."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from bridle.approvals import Approve
from bridle.loopback import loopback_of
from bridle.loopback.approvals import _fitting
from bridle.supervisor import Supervisor
from bridle.views.detail import SIZES
from tests.supervisor.homes import ASKS, DONE, INIT, ME, PROMPT, TURN, WORKS, Home, asked, until

from .parents import LIMIT, Json, Parent, opened, parent_with


#: A turn with so many words in it.
def words(number: int, size: int = 10) -> list[Json]:
    return [PROMPT, INIT, *({"say": f"{n:03} " + "x" * size} for n in range(number)), DONE]


def numbers(given: Json) -> list[int]:
    return [one["seq"] for one in given["events"]]


async def done(supervisor: Supervisor, child: str, turns: int = 1) -> None:
    is_so = lambda record: record.turns == turns and record.published == "idle"  # noqa: E731
    await supervisor.wait(child, is_so, LIMIT)


async def whole(parent: Parent, child: str, **arguments: Any) -> list[Json]:
    """All events, page by page."""
    found: list[Json] = []
    while True:
        given = await parent.poll(child, wait_ms=0, **arguments)
        found += given["events"]
        if not given["has_more"]:
            return found


async def test_events_come_once_each_without_gaps_from_zero(home: Home) -> None:
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, *words(30))
        child = await parent.child()
        await done(supervisor, child)
        found = await whole(parent, child, limit=7)
        assert [one["seq"] for one in found] == list(range(len(found)))
        said = [one["event"]["text"][:3] for one in found if one["event"]["type"] == "content"]
        assert said == [f"{n:03}" for n in range(30)]
        again = await parent.poll(child, wait_ms=0)
        assert again["events"] == []
        assert again["read_position"] == again["total_events"] == len(found)


async def test_to_look_again_moves_nothing(home: Home) -> None:
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, *words(5))
        child = await parent.child()
        await done(supervisor, child)
        first = await parent.poll(child, wait_ms=0, limit=4)
        assert numbers(first) == [0, 1, 2, 3]
        replayed = await parent.poll(child, wait_ms=0, from_seq=2, limit=3)
        assert numbers(replayed) == [2, 3, 4]
        by_cursor = await parent.poll(child, wait_ms=0, cursor=replayed["cursor"], limit=2)
        assert numbers(by_cursor) == [5, 6]
        after = await parent.poll(child, wait_ms=0, limit=1)
        assert numbers(after) == [4]
        assert (after["read_position"], first["read_position"]) == (5, 4)


async def test_the_cursor_of_a_chat_begins_where_its_turn_does(home: Home) -> None:
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, *TURN, *TURN)
        child = await parent.child()
        await done(supervisor, child)
        started = await parent.ok("claudecode_chat_async", session_id=child, prompt="more")
        given = await parent.poll(child, cursor=started["cursor"], until="turn_end")
        starts = [one["event"] for one in given["events"] if one["event"]["type"] == "start"]
        assert [one["id"] for one in starts] == [started["turn_id"]]
        assert starts[0]["user_position"]["node_id"] == started["turn_id"]
        ends = [one["event"] for one in given["events"] if one["event"]["type"] == "complete"]
        assert ends[0]["turn_ids"] == [started["turn_id"]]


async def test_from_beyond_the_end_there_is_nothing(home: Home) -> None:
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, *TURN)
        child = await parent.child()
        await done(supervisor, child)
        given = await parent.poll(child, wait_ms=0, from_seq=1 << 60)
        assert given["events"] == []
        assert not given["has_more"]


async def test_a_poll_that_is_repeated_gives_the_same_events(home: Home) -> None:
    async with opened(home, keep=True) as supervisor:
        parent = await parent_with(home, supervisor, *words(5))
        child = await parent.child()
        await done(supervisor, child)
        first = await parent.ok("claudecode_poll", "k1", session_id=child, limit=3)
        second = await parent.ok("claudecode_poll", "k2", session_id=child, limit=2)
    async with opened(home) as supervisor:
        parent = Parent(loopback_of(supervisor), supervisor.get("parent"))
        for key, given in (("k1", first), ("k2", second), ("k1", first)):
            again = await parent.ok("claudecode_poll", key, session_id=child, limit=50)
            assert again["events"] == given["events"]
        third = await parent.poll(child, limit=1)
        assert numbers(third) == [5]


async def test_positions_hold_over_a_restart(home: Home) -> None:
    async with opened(home, keep=True) as supervisor:
        parent = await parent_with(home, supervisor, *words(20))
        child = await parent.child()
        await done(supervisor, child)
        before = (await parent.poll(child, wait_ms=0, limit=9))["events"]
    async with opened(home) as supervisor:
        parent = Parent(loopback_of(supervisor), supervisor.get("parent"))
        rest = await whole(parent, child, limit=4)
        assert [one["seq"] for one in before + rest] == list(range(len(before) + len(rest)))
        replayed = await parent.poll(child, wait_ms=0, from_seq=0, limit=9)
        assert replayed["events"] == before


# --- waiting


async def test_a_poll_waits_for_what_comes_and_no_longer(home: Home) -> None:
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, *ASKS)
        child = await parent.child(loopback_enabled=False)
        approval = await asked(supervisor, child)
        await parent.poll(child, wait_ms=0)
        waiting = asyncio.ensure_future(parent.poll(child, until="turn_end"))
        await asyncio.sleep(0)
        assert not waiting.done()
        await supervisor.approvals.decide(approval.id, Approve(), by=ME)
        given = await waiting
        assert given["status"] == "complete"
        assert "complete" in [one["event"]["type"] for one in given["events"]]


async def test_the_end_of_a_turn_that_is_the_very_next_event_is_not_waited_for(home: Home) -> None:
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, *TURN, *WORKS)
        child = await parent.child()
        await done(supervisor, child)
        found = await whole(parent, child)
        [end] = [one["seq"] for one in found if one["event"]["type"] == "complete"]
        await parent.ok("claudecode_chat_async", session_id=child, prompt="more")
        await until(supervisor, child, "running")
        given = await parent.poll(child, until="turn_end", from_seq=end, wait_ms=600_000)
        assert given["events"][0]["event"]["type"] == "complete"


async def test_a_poll_gives_up_in_its_time(home: Home) -> None:
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, *WORKS)
        child = await parent.child()
        await supervisor.wait(child, lambda record: record.state == "running", 15)
        start = asyncio.get_running_loop().time()
        given = await parent.poll(child, until="turn_end", wait_ms=150)
        assert asyncio.get_running_loop().time() - start >= 0.15
        assert given["status"] == "running"


@pytest.mark.parametrize("wanted", ["any", "approval", "turn_end"])
async def test_nobody_waits_for_a_session_that_has_nothing_to_do(home: Home, wanted: str) -> None:
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, *TURN)
        child = await parent.child(prompt=None)
        await until(supervisor, child, "idle")
        await whole(parent, child)
        given = await parent.poll(child, until=wanted, wait_ms=600_000)
        assert given["status"] == "idle"


async def test_what_only_a_person_may_decide_ends_no_wait(home: Home) -> None:
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, *ASKS)
        child = await parent.child(loopback_enabled=False)
        approval = await asked(supervisor, child)
        given = await parent.poll(child, until="approval", wait_ms=100)
        assert given["pending_approvals"] == []
        assert given["waiting_for_others"]
        assert given["status"] == "awaiting_permission"
        pending = await parent.ok("loopback_pending")
        assert pending["pending_approvals"] == []
        assert pending["sessions_waiting_for_others"] == [child]
        code = await parent.refused("loopback_respond", approval_id=approval.id, approve=True)
        assert code == "not_found"


async def test_an_approval_ends_the_wait_for_the_end_of_a_turn(home: Home) -> None:
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, *ASKS)
        child = await parent.child()
        given = await parent.poll(child, until="turn_end")
        assert [one["is_yours_now"] for one in given["pending_approvals"]] == [True]
        assert "goes_on_at" in given["pending_approvals"][0]


async def test_one_poll_serves_several_sessions(home: Home) -> None:
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, *ASKS)
        children = [await parent.child(f"c{number}") for number in range(3)]
        left, given = set(children), Json()
        while left:
            given = await parent.ok("claudecode_poll", session_ids=children, until="approval")
            assert [one["session_id"] for one in given["sessions"]] == children
            for one in given["sessions"]:
                for approval in one["pending_approvals"]:
                    await parent.ok("loopback_respond", approval_id=approval["id"], approve=True)
            left = {one["session_id"] for one in given["sessions"] if one["status"] != "complete"}
        cursor = given["cursor"]
        again = await parent.ok("claudecode_poll", session_ids=children, cursor=cursor, wait_ms=0)
        assert all(not one["has_more"] for one in again["sessions"])
        code = await parent.refused("claudecode_poll", session_ids=["c0", "c1"], cursor="AQAA")
        assert code == "invalid_cursor"


async def test_a_session_that_is_named_twice_is_given_once(home: Home) -> None:
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, *TURN)
        child = await parent.child()
        given = await parent.ok("claudecode_poll", session_ids=[child, "child", child], wait_ms=0)
        assert len(given["sessions"]) == 1


async def test_waiters_hear_of_a_deletion_and_of_the_end(home: Home) -> None:
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, *WORKS)
        child = await parent.child()
        await supervisor.wait(child, lambda record: record.state == "running", 15)
        waiting = asyncio.ensure_future(parent.call("claudecode_poll", session_id=child,
                                                    until="turn_end"))  # fmt: skip
        await asyncio.sleep(0)
        stopped = await parent.ok("claudecode_stop", session_id=child)
        assert stopped["state"] == "stopped"
        assert (await waiting)["status"] == "cancelled"
        other = await parent.child("other")
        await supervisor.wait(other, lambda record: record.state == "running", 15)
        listening = asyncio.ensure_future(
            parent.call("claudecode_poll", session_id=other, until="turn_end")
        )
        await asyncio.sleep(0)
        await supervisor.stop(other)
        await listening
        assert (await parent.ok("claudecode_delete", session_id=other))["session_id"] == other
        assert await parent.refused("claudecode_poll", session_id=other) == "not_found"


async def test_a_wait_ends_when_the_supervisor_does(home: Home) -> None:
    async with opened(home, keep=True) as supervisor:
        parent = await parent_with(home, supervisor, *WORKS)
        child = await parent.child()
        await supervisor.wait(child, lambda record: record.state == "running", 15)
        call = parent.call("claudecode_poll", session_id=child, until="turn_end")
        waiting = asyncio.ensure_future(call)
        await asyncio.sleep(0.05)
    given = await waiting
    assert given["code"] == "unavailable"
    async with opened(home):
        pass


# --- how much


@pytest.mark.parametrize("detail", SIZES)
async def test_an_answer_is_bounded_whatever_was_said(home: Home, detail: str) -> None:
    steps = [PROMPT, INIT, *({"say": "é" * 60_000} for _ in range(8)), {"big": 400_000}, DONE]
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, *steps)
        child = await parent.child()
        await done(supervisor, child)
        sizes, seen = [], 0
        while True:
            given = await parent.poll(child, wait_ms=0, detail=detail, limit=1_000)
            sizes.append(len(msgspec.json.encode(given)))
            seen += len(given["events"])
            if not given["has_more"]:
                break
        bound = SIZES[detail].answer  # type: ignore[index]
        assert max(sizes) < bound * 1.4
        assert seen == given["total_events"]


async def test_what_an_approval_asks_can_be_seen_whole(home: Home) -> None:
    given = {"command": "echo " + "x" * 16_000}
    steps = (
        *(PROMPT, INIT),
        {"ask": {"tool_name": "Bash", "input": given, "tool_use_id": "t1"}, "id": "q1"},
        DONE,
    )
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, *steps)
        child = await parent.child()
        seen = await parent.poll(child, until="approval")
        [approval] = seen["pending_approvals"]
        assert approval["input_cut"] > 0
        full = await parent.ok("loopback_pending", approval_id=approval["id"], detail="full")
        assert full["pending_approvals"][0]["input"] == given


#: More than an answer has room for.
MANY_ASKS: list[Json] = [
    {
        "ask": {
            "tool_name": "Write",
            "input": {"file_path": "a", "content": "x" * 30_000},
            "tool_use_id": f"t{n}",
        },
        "id": f"q{n}",
        "wait": False,
    }
    for n in range(6)
]


async def test_of_many_approvals_the_oldest_are_shown_and_the_others_counted(home: Home) -> None:
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, PROMPT, INIT, *MANY_ASKS, {"pause": 60})
        children = [await parent.child(name) for name in ("a", "b")]
        for child in children:
            await supervisor.wait(child, lambda record: len(record.approvals) == 6, LIMIT)
        given = await parent.ok("loopback_pending")
        shown = given["pending_approvals"]
        assert len(shown) + given["more_pending"] == 12
        assert given["more_pending"] > 0
        assert given["sessions_waiting_for_others"] == []
        times = [one["created_at"] for one in shown]
        assert times == sorted(times)
        for child in children:
            asked = await supervisor.approvals.list(session=child)
            oldest = [one.id for one in sorted(asked, key=lambda one: one.created)]
            of_child = [one["id"] for one in shown if one["session_id"] == child]
            assert of_child
            assert of_child == oldest[: len(of_child)]
        named = await parent.ok("loopback_pending", name="b")
        assert [one["session_id"] for one in named["pending_approvals"]] == [children[1]] * 6
        assert named["more_pending"] == 0


async def test_what_is_put_to_the_caller_now_comes_before_what_went_on(home: Home) -> None:
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, PROMPT, INIT, *MANY_ASKS[:2], {"pause": 60})
        child = await parent.child("a")
        record = await supervisor.wait(child, lambda record: len(record.approvals) == 2, LIMIT)
        asked = [await supervisor.approvals.get(one) for one in record.approvals]
        first, second = (one.id for one in sorted(asked, key=lambda one: one.created))
        given = await parent.ok("loopback_pending")
        assert [one["id"] for one in given["pending_approvals"]] == [first, second]
        polled = await parent.poll(child, wait_ms=0)
        assert [one["id"] for one in polled["pending_approvals"]] == [first, second]
        await parent.ok("loopback_escalate", approval_id=first, why="not mine to say")
        polled = await parent.poll(child, wait_ms=0)
        assert [one["is_yours_now"] for one in polled["pending_approvals"]] == [True, False]
        assert polled["waiting_for_others"]
        given = await parent.ok("loopback_pending")
        shown = {one["id"]: one["is_yours_now"] for one in given["pending_approvals"]}
        assert list(shown) == ([second, first] if first in shown else [second])
        assert shown[second]
        assert not shown.get(first)


def test_as_many_fit_as_there_is_room_for_and_one_at_least() -> None:
    shown: list[dict[str, Any]] = [{"id": "a"}, {"id": "b"}, {"id": "c"}]
    size = len(msgspec.json.encode(shown[0]))
    for room, count in ((0, 1), (2 * size - 1, 1), (2 * size, 2), (3 * size - 1, 2), (3 * size, 3)):
        assert _fitting(shown, room) == shown[:count]
    assert _fitting([], 9) == []


@pytest.mark.slow
async def test_an_answer_about_many_sessions_is_bounded_too(home: Home) -> None:
    says = [{"say": "é" * 9_000} for _ in range(3)]
    steps = [PROMPT, INIT, *says, *MANY_ASKS, {"pause": 60}]
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, *steps)
        children = [await parent.child(f"c{number}") for number in range(8)]
        for child in children:
            await supervisor.wait(child, lambda record: len(record.approvals) == 6, LIMIT)
        given = await parent.ok("claudecode_poll", session_ids=children, wait_ms=0)
        assert len(msgspec.json.encode(given)) < SIZES["normal"].answer * 2
        for one in given["sessions"]:
            assert one["events"]
            assert one["pending_approvals"]
            assert len(one["pending_approvals"]) + one["more_pending"] == 6
        pending = await parent.ok("loopback_pending")
        assert len(msgspec.json.encode(pending)) < SIZES["normal"].answer * 1.2
        assert len(pending["pending_approvals"]) + pending["more_pending"] == 48
