"""A controller that is killed at exactly this point, and the next one: it goes on as if nothing
had happened. Each point is a line in `points`."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bridle.session.responder import MAYBE_DONE
from bridle.views import stream

from .accounts import Account, accounts_of, check_all
from .controller import Order
from .killing import Run, Said, controllers
from .leftovers import no_leftovers
from .plans import NEW, OLD, as_program, planned, write_plan
from .points import POINTS

CLOSING = [point for point in POINTS if point.startswith("closed")]
TAKING_UP = [point for point in POINTS if point.startswith("while taken up")]
STOPPING = [
    "it is asked to stop, and nothing is done",
    "it has stopped, and that is not logged",
    "its end is logged, and the spool not removed",
    "the spool is half removed",
]
#: These are answered with the truth: that nobody knows.
UNCERTAIN = {
    "a hook of the user's runs": "done-a-1",
    "a tool has run, and the answer is not written": "call-a-1",
}
#: The agent waits for what only the next controller can give it.
WAITING = "an answer is committed, and not appended"
DELETING = "half of a deleted session is gone"
WORKING = [p for p in POINTS if p not in (*CLOSING, *TAKING_UP, *STOPPING, DELETING)]
OLD_TOO = [
    "a hook is logged, and not called",
    "an approval is asked, and not seen",
    "an answer is appended, and not marked delivered",
    "a no of a hook is appended, and not logged",
    "a withdrawal is logged, and the approval not cancelled",
]


def sampled(cases: Sequence[Any]) -> list[Any]:
    """Each takes half a second: `make test` runs one in ten."""
    return [
        pytest.param(*case, marks=() if number % 10 == 0 else pytest.mark.slow)
        for number, case in enumerate(cases)
    ]


def plan(folder: Path, version: str = NEW) -> None:
    write_plan(folder, [as_program(folder, planned(folder, "a", 2, version, large=2))])


async def killed_at(run: Run, point: str, **order: object) -> Said:
    said = await run(Order(point=point, **order))  # type: ignore[arg-type]
    assert said.lines[-1] == f"at {point}"
    assert said.signal == signal.SIGKILL
    return said


async def finished(run: Run, folder: Path, *before: Said) -> Account:
    """The next controller does the rest, and all adds up, also after the stop."""
    said = [line for one in before for line in one.lines]
    last = await run(Order())
    assert last.lines[-1] == "done"
    [account] = await check_all(folder, [*said, *last.lines], is_running=True)
    await run(Order(task="stop"))
    [stopped] = await check_all(folder, [], is_running=False)
    assert stopped.record.state == "stopped"
    return account


@pytest.mark.parametrize(
    ("point", "version"),
    sampled([*((point, NEW) for point in WORKING), *((point, OLD) for point in OLD_TOO)]),
)
async def test_killed_here_a_controller_leaves_all_that_the_next_one_needs(
    tmp_path: Path, point: str, version: str
) -> None:
    plan(tmp_path, version)
    async with no_leftovers(tmp_path), controllers(tmp_path) as run:
        said = await killed_at(run, point)
        account = await finished(run, tmp_path, said)
    if point in UNCERTAIN:
        [answer] = account.answers[UNCERTAIN[point]]
        assert MAYBE_DONE in str(answer)
    else:
        assert MAYBE_DONE not in str(account.told)


@pytest.mark.slow
@pytest.mark.parametrize("point", sampled([(point,) for point in TAKING_UP]))
async def test_a_controller_may_be_killed_again_and_again_while_it_takes_up(
    tmp_path: Path, point: str
) -> None:
    plan(tmp_path)
    async with no_leftovers(tmp_path), controllers(tmp_path) as run:
        said = [await killed_at(run, WAITING)]
        said += [await killed_at(run, point) for _ in range(3)]
        await finished(run, tmp_path, *said)


@pytest.mark.parametrize("point", sampled([(point,) for point in STOPPING]))
async def test_a_stop_that_was_asked_for_is_done_by_the_next_controller(
    tmp_path: Path, point: str
) -> None:
    plan(tmp_path)
    async with no_leftovers(tmp_path), controllers(tmp_path) as run:
        await run(Order())
        await killed_at(run, point, task="stop")
        await run(Order(task="look"))
        [account] = await check_all(tmp_path, [], is_running=False)
    assert account.record.state == "stopped"
    assert [body.how for body in account.bodies(stream.ENDED)] == ["stopped"]


async def test_what_was_deleted_does_not_come_back_without_its_past(tmp_path: Path) -> None:
    plan(tmp_path)
    async with no_leftovers(tmp_path), controllers(tmp_path) as run:
        await run(Order())
        await run(Order(task="stop"))
        assert "sees a 2" in (await run(Order(task="look"))).lines
        await killed_at(run, DELETING, task="delete")
        assert (await run(Order(task="look"))).lines == ["up", "sees 0 approvals", "done"]


@pytest.mark.slow
@pytest.mark.parametrize("point", CLOSING)
@pytest.mark.parametrize("version", [NEW, OLD])
async def test_agents_run_on_when_their_controller_closes(
    tmp_path: Path, point: str, version: str
) -> None:
    plan(tmp_path, version)
    async with no_leftovers(tmp_path), controllers(tmp_path) as run:
        said = await run(Order(point=point))
        assert said.signal is None
        assert "done" not in said.lines
        await finished(run, tmp_path, said)


@pytest.mark.slow
async def test_to_take_up_twice_is_the_same_as_once(tmp_path: Path) -> None:
    plan(tmp_path)
    async with no_leftovers(tmp_path), controllers(tmp_path) as run:
        said = await killed_at(run, "an approval is asked, and not seen")
        await run(Order(task="look", pending=2))
        once = await what_is_known(tmp_path)
        for _ in range(3):
            await run(Order(task="look"))
            await killed_at(run, "up, and nothing done")
        assert await what_is_known(tmp_path) == once
        await finished(run, tmp_path, said)


async def what_is_known(folder: Path) -> list[tuple[str, bytes]]:
    """All that is in the log, but for that it was taken up."""
    [account] = await accounts_of(folder)
    pairs = zip(account.events, account.payloads, strict=True)
    return [(event.kind, body) for event, body in pairs if event.kind != stream.TAKEN_UP]
