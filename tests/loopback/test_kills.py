"""Controllers that are killed while a parent makes its calls: each has its effect once."""

from __future__ import annotations

import asyncio
import random
import sys
from pathlib import Path
from typing import Any

import pytest

from bridle.errors import NotPossible
from bridle.loopback import loopback_of
from bridle.supervisor import Supervisor
from bridle.views import stream
from tests.levels import tries
from tests.supervisor.homes import DONE, INIT, TURN, Home, Step, bodies

from .parents import LIMIT, Json, Parent, answered, branching, called, calls, opened, parent_with

REPO = Path(__file__).parents[2]
KILLS = tries(4, 25, 100)
CHILDREN = 10


def lead() -> list[Step]:
    """Child after child: created, told, followed to its end, stopped."""
    steps: list[Step] = [INIT]
    for n in range(CHILDREN):
        name: Json = {"name": f"c{n}"}
        poll = {**name, "until": "turn_end"}
        steps += [
            calls("claudecode_create", name, f"create-{n}"),
            calls("claudecode_chat_async", {**name, "prompt": "work"}, f"chat-{n}"),
            calls("claudecode_poll", {**name, "limit": 2}, f"poll-{n}-0"),
            calls("claudecode_poll", poll, f"poll-{n}-1"),
            calls("claudecode_poll", poll, f"poll-{n}-2"),
            calls("claudecode_stop", name, f"stop-{n}"),
        ]
    return [*steps, DONE]


WORK = [INIT, {"say": "one"}, {"pause": 0.05}, {"say": "two"}, DONE]


async def killed_after(home: Path, seconds: float) -> None:
    """A controller of the home, from its start until it is killed."""
    controller = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.loopback.controller", str(home),
        cwd=REPO, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        assert controller.stdout
        async with asyncio.timeout(LIMIT):
            assert await controller.stdout.readline() == b"up\n"
        await asyncio.sleep(seconds)  # it is killed at any moment
    finally:
        controller.kill()
        await controller.wait()


@pytest.mark.slow
@pytest.mark.deeper
@pytest.mark.timeout(60 + KILLS * 5)
async def test_every_call_of_a_parent_has_its_effect_once_however_often_we_die(home: Home) -> None:
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")  # noqa: T201 - shown where it fails
    luck = random.Random(seed)
    command = branching(home, {"lead": lead(), "work": WORK})
    async with opened(home, keep=True) as supervisor:
        await home.start(supervisor, name="p", prompt="lead", command=command, loopback=True)
    for _ in range(KILLS):
        await killed_after(home.folder, luck.uniform(0.01, 0.5))
    async with opened(home) as supervisor:
        await supervisor.wait("p", lambda record: record.turns == 1, 60)
        await check(supervisor)


async def check(supervisor: Supervisor) -> None:
    parent = supervisor.get("p")
    children = supervisor.list(lambda record: record.parent == parent.id)
    assert [child.name for child in children] == [f"c{n}" for n in range(CHILDREN)]
    written = await bodies(supervisor, "p", stream.WROTE)
    answers = [body.id for body in written if body.what == "answer" and "-" in body.id]
    for n, child in enumerate(children):
        assert answers.count(f"create-{n}") == 1
        assert (await answered(supervisor, "p", f"create-{n}"))["id"] == child.id
        started = await answered(supervisor, "p", f"chat-{n}")
        told = await bodies(supervisor, child.id, stream.PROMPTED)
        assert [body.uuid for body in told] == [started["turn_id"]]
        seen: list[Any] = []
        for part in range(3):
            seen += (await answered(supervisor, "p", f"poll-{n}-{part}"))["events"]
        assert [one["seq"] for one in seen] == list(range(len(seen)))
        assert child.turns == 1


# --- an answer that was lost


async def test_a_create_that_is_repeated_gives_the_same_child(home: Home) -> None:
    async with opened(home, keep=True) as supervisor:
        parent = await parent_with(home, supervisor, *TURN)
        first = await parent.ok("claudecode_create", "k", name="child")
        again = await parent.ok("claudecode_create", "k", name="child")
        assert first["id"] == again["id"]
    async with opened(home) as supervisor:
        parent = Parent(loopback_of(supervisor), supervisor.get("parent"))
        assert (await parent.ok("claudecode_create", "k", name="child"))["id"] == first["id"]
        assert len(supervisor.list()) == 2
        other = await parent.ok("claudecode_create", "l", name="other")
        assert other["id"] != first["id"]


async def test_the_same_create_twice_at_a_time_makes_one(home: Home) -> None:
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, *TURN)
        made = await asyncio.gather(
            *(parent.ok("claudecode_create", "k", name="child") for _ in range(5))
        )
        assert len({one["id"] for one in made}) == 1
        assert len(supervisor.list()) == 2


async def test_what_was_made_and_deleted_is_not_made_again(home: Home) -> None:
    async with opened(home, keep=True) as supervisor:
        parent = await parent_with(home, supervisor, *TURN)
        made = await parent.ok("claudecode_create", "k", name="child")
        await parent.ok("claudecode_stop", session_id=made["id"])
        for _ in range(2):
            given = await parent.ok("claudecode_delete", "d", session_id=made["id"])
            assert given["session_id"] == made["id"]
        assert (await parent.call("claudecode_create", "k", name="child"))["code"] == "gone"
    async with opened(home) as supervisor:
        parent = Parent(loopback_of(supervisor), supervisor.get("parent"))
        assert (await parent.call("claudecode_create", "k", name="child"))["code"] == "gone"
        assert (await parent.call("claudecode_delete", "d", session_id="child"))["type"] == "ok"
        code = await parent.refused("claudecode_delete", session_id=made["id"])
        assert code == "not_found"


@pytest.mark.parametrize("is_keyed", [True, False])
async def test_a_chat_that_is_repeated_is_told_once_also_after_its_turn(
    home: Home, is_keyed: bool
) -> None:
    more: Json = {"idempotency_key": "once"} if is_keyed else {}
    async with opened(home, keep=True) as supervisor:
        parent = await parent_with(home, supervisor, *TURN, *TURN)
        child = await parent.child(prompt=None)
        say = {"session_id": child, "prompt": "go", **more}
        first = await parent.ok("claudecode_chat_async", "k", **say)
        again = await parent.ok("claudecode_chat_async", "other" if is_keyed else "k", **say)
        assert first == again
        await parent.poll(child, until="turn_end")
    async with opened(home) as supervisor:
        parent = Parent(loopback_of(supervisor), supervisor.get("parent"))
        assert await parent.ok("claudecode_chat_async", "k", **say) == first
        assert len(await bodies(supervisor, child, stream.PROMPTED)) == 1
        await parent.ok("claudecode_chat_async", session_id=child, prompt="more")
        assert len(await bodies(supervisor, child, stream.PROMPTED)) == 2


async def test_a_chat_that_was_meant_and_not_told_is_told(home: Home) -> None:
    """As after a kill between the two."""
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, *TURN)
        child = await parent.child(prompt=None)
        await supervisor.stop(child)
        # Its variables, or whatever else a start needs, are not there just now.
        record = supervisor.get(child)
        assert record.state == "stopped"
        given = await parent.ok("claudecode_chat_async", "k", session_id=child, prompt="go")
        assert (await parent.poll(child, until="turn_end"))["status"] == "complete"
        assert given == await parent.ok("claudecode_chat_async", "k", session_id=child, prompt="go")


async def test_an_interrupt_that_is_repeated_ends_no_later_turn(home: Home) -> None:
    """The later turn is one that would be ended by it."""
    replies: Json = {"interrupt": {}}
    ended = {"result": {"subtype": "error_during_execution", "is_error": False}}
    steps: list[Step] = [INIT, {"await_request": "interrupt"}, ended]
    command = branching(home, {"work": steps}, replies=replies)
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, command=command)
        child = await parent.child(prompt="work")
        await supervisor.wait(child, lambda record: record.state == "running", LIMIT)
        first = await parent.ok("claudecode_interrupt", "k", session_id=child)
        assert first["was_running"]
        assert (await parent.poll(child, until="turn_end"))["status"] == "cancelled"
        await parent.ok("claudecode_chat_async", session_id=child, prompt="work")
        await supervisor.wait(child, lambda record: record.state == "running", LIMIT)
        again = await parent.ok("claudecode_interrupt", "k", session_id=child)
        assert not again["was_running"]
        assert supervisor.get(child).state == "running"


async def test_a_response_that_is_repeated_is_the_same_and_another_is_refused(home: Home) -> None:
    ask = {"tool_name": "Bash", "input": {"command": "rm x"}, "tool_use_id": "t1"}
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, {"prompt": True}, INIT, {"ask": ask}, DONE)
        child = await parent.child()
        [approval] = (await parent.poll(child, until="approval"))["pending_approvals"]
        say = {"approval_id": approval["id"], "approve": True}
        await parent.ok("loopback_respond", "k", **say)
        await parent.ok("loopback_respond", "k", **say)
        say["approve"] = False
        assert await parent.refused("loopback_respond", **say) == "already_decided"


async def test_what_is_kept_of_positions_goes_with_a_session(home: Home) -> None:
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, *TURN)
        child = await parent.child()
        await parent.poll(child, until="turn_end")
        records = supervisor.journal.records
        assert await records.get("loopback.positions", child)
        await supervisor.stop(child)
        with pytest.raises(NotPossible):
            await supervisor.stop(child)
        await supervisor.delete(child)
        assert await records.get("loopback.positions", child) is None


async def test_a_poll_that_waits_when_we_close_is_answered_by_who_opens_next(home: Home) -> None:
    name: Json = {"name": "child"}
    steps = [
        INIT,
        calls("claudecode_create", name, "made"),
        calls("claudecode_chat_async", {**name, "prompt": "work"}, "told"),
        calls("claudecode_poll", {**name, "until": "turn_end", "wait_ms": 60_000}, "polled"),
        DONE,
    ]
    work: list[Step] = [INIT, {"await_request": "set_model"}, DONE]
    command = branching(home, {"lead": steps, "work": work})
    async with opened(home, keep=True) as supervisor:
        await home.start(supervisor, name="p", prompt="lead", command=command, loopback=True)
        await answered(supervisor, "p", "told")
        await supervisor.wait("child", lambda record: record.state == "running", LIMIT)
        await called(supervisor, "p", "polled")
    async with opened(home) as supervisor:
        await supervisor.live("child").set_model("other")
        given = await answered(supervisor, "p", "polled")
        assert given["status"] == "complete"
        assert [one["seq"] for one in given["events"]] == list(range(len(given["events"])))
