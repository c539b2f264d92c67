"""Supervised agents: controllers are killed, agents go on."""

from __future__ import annotations

import os
import random
import signal
import struct
import zlib
from pathlib import Path

import psutil
import pytest

import bridle
from bridle.approvals import Approve
from bridle.protocol.messages import Result
from bridle.session.responder import MAYBE_DONE
from bridle.supervisor import SessionRecord
from bridle.testing import Conversation, Hold, Turn, mentions, tool_use

from .controller import ADA, LIMIT_SECONDS, large_prompt, make, send_large
from .house import House, Log, house, log_of, stopped, turned, until
from .lab import Fifo, Lab, is_alive
from .talk import prompts, reached

#: What every version asks about, and what tells how often it ran.
BASH = tool_use("Bash", command="touch t.txt && echo ran >> ran.txt", description="count")
GO = {"a": "go"}


def ran(lab: Lab) -> int:
    path = lab.cwd / "ran.txt"
    return len(path.read_text().splitlines()) if path.exists() else 0


async def test_killed_in_approval(lab: Lab) -> None:
    """Five controllers are killed while an approval waits and as it is given: it runs once"""
    script: list[Turn | str] = [Turn("I count.", BASH), "Counted.", "Still here."]
    async with house(lab, script) as here:
        first = await here.start(agents=GO)
        asked = await first.said("asked")
        await first.kill()
        for _ in range(3):
            again = await here.start(agents=GO)
            assert await again.said("up") == asked
            assert ran(lab) == 0
            await again.kill(within=0.1)
        last = await here.start(agents=GO, approves=True)
        assert await last.said("up") == asked
        await last.kill(within=0.03)
        async with here.open() as supervisor:
            for approval in await supervisor.approvals.list(status="pending"):
                await supervisor.approvals.decide(approval.id, Approve(), by=ADA)
            await turned(supervisor, 1)
            assert ran(lab) == 1
            await supervisor.send("a", "are you there?")
            await turned(supervisor, 2)
            (approval,) = await supervisor.approvals.list()
            assert (approval.status, approval.id) == ("allowed", asked[0])
            assert approval.delivered
            assert approval.outcome
            assert approval.outcome.how == "ran"
            log = await log_of(supervisor)
            assert log.said() == ["I count.", "Bash", "Counted.", "Still here."]
            assert log.of_approvals() == [
                "approval.requested",
                "approval.decided",
                "approval.delivered",
                "approval.outcome",
            ]
            await stopped(here, supervisor, "a")
        assert ran(lab) == 1


async def killed_in_effect(here: House, again: int) -> None:
    """A controller is killed while something of ours runs, and more of them as they take up."""
    first = await here.start(agents=GO)
    await first.said("effect")
    await first.kill()
    for _ in range(again):
        another = await here.start(agents=GO)
        await another.said("opens")
        await another.kill(within=0.1)


def told(here: House, call: int) -> str:
    """What the model was told of a tool call, by its number."""
    return list(here.model.requests[-1].tool_results.values())[call]


async def test_killed_in_hook(lab: Lab) -> None:
    """Three controllers are killed while a hook runs: it is not called again, nothing is run"""
    script: list[Turn | str] = [Turn(BASH), "I see.", Turn(BASH), "Counted."]
    async with house(lab, script, policy="autonomous", has_hook=True) as here:
        await killed_in_effect(here, again=2)
        async with here.open() as supervisor:
            await turned(supervisor, 1)
            assert len(here.effects) == 1
            assert ran(lab) == 0
            assert MAYBE_DONE in told(here, 0)
            await supervisor.send("a", "once more")
            await turned(supervisor, 2)
            assert len(here.effects) == 2
            assert ran(lab) == 1
            log = await log_of(supervisor)
            assert log.said() == ["Bash", "I see.", "Bash", "Counted."]
            await stopped(here, supervisor, "a")


async def test_killed_in_tool(lab: Lab) -> None:
    """Two controllers are killed while a tool of ours runs: it is not called again"""
    script: list[Turn | str] = [note("one"), "I see.", note("two"), "Noted."]
    async with house(lab, script, policy="autonomous") as here:
        await killed_in_effect(here, again=1)
        async with here.open() as supervisor:
            await turned(supervisor, 1)
            assert here.effects == ["noted one"]
            assert MAYBE_DONE in told(here, 0)
            await supervisor.send("a", "once more")
            await turned(supervisor, 2)
            assert here.effects == ["noted one", "noted two"]
            assert told(here, 1) == "two: noted"
            await stopped(here, supervisor, "a")


def note(words: str) -> Turn:
    return Turn(tool_use("mcp__tools__note", words=words))


async def test_no_controller(lab: Lab) -> None:
    """The controller is killed in a turn: the agent works until it asks, the next one answers"""
    hold = Hold()
    script: list[Turn | str] = [Turn("I count.", hold, BASH), "Counted."]
    async with house(lab, script, policy="autonomous") as here:
        first = await here.start(agents=GO)
        await reached(hold)
        await first.kill()
        hold.release()
        await until(lambda: b'"hook_callback"' in here.spool().read("stdout", 0, 1 << 30))
        assert ran(lab) == 0
        async with here.open() as supervisor:
            assert supervisor.recovered.pending == ()
            await turned(supervisor, 1)
            assert ran(lab) == 1
            assert (await log_of(supervisor)).said() == ["I count.", "Bash", "Counted."]
            await stopped(here, supervisor, "a")


async def test_killed_in_send(lab: Lab) -> None:
    """Three controllers are killed while they send 500 KB and pictures: told once, and whole"""
    scripts = [Conversation([f"Read by {name}."], when=mentions(f"<{name} ends>")) for name in "ab"]
    pictures = noise(lab.home.parent, 4)
    agents = {"a": "", "b": ""}
    async with house(lab, *scripts) as here:
        for _ in range(2):
            again = await here.start(agents=agents, sends="a", pictures=pictures)
            await again.said("sends")
            await again.kill(within=0.1)
        torn = await here.start(agents=agents, sends="b", pictures=pictures, is_torn=True)
        await torn.said("torn")
        await torn.killed()
        async with here.open() as supervisor:
            for name in agents:
                await send_large(supervisor, name, pictures)
                await turned(supervisor, 1, name)
                assert (await log_of(supervisor, name)).said() == [f"Read by {name}."]
                assert_told_once(here, name)
            await stopped(here, supervisor, *agents)


def noise(folder: Path, count: int) -> list[str]:
    """PNGs that can't be packed any smaller, of 0.9 MB each."""
    paths = [folder / f"{number}.png" for number in range(count)]
    for path in paths:
        path.write_bytes(png(640, 480))
    return [str(path) for path in paths]


def png(width: int, height: int) -> bytes:
    rows = b"".join(b"\0" + random.randbytes(3 * width) for _ in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", head), (b"IDAT", zlib.compress(rows, 0)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks
    )


def assert_told_once(here: House, name: str) -> None:
    [text, *_] = large_prompt(name, [])
    (request,) = (one for one in here.model.requests if f"<{name} " in one.everything)
    assert request.everything.count(str(text)) == 1
    assert request.everything.count(f"<{name} ") == 2
    assert request.images == 4


async def test_cli_killed_in_approval(lab: Lab) -> None:
    """The CLI is killed while an approval waits: that is cancelled, and resume goes on"""
    script: list[Turn | str] = ["Hello.", Turn("I count.", BASH), "A horse."]
    async with house(lab, script) as here, here.open() as supervisor:
        await make(supervisor, here.place, "a", "remember the horse")
        first = await turned(supervisor, 1)
        await supervisor.send("a", "count")
        await supervisor.wait("a", lambda r: r.state == "awaiting approval", LIMIT_SECONDS)
        cli = here.spool().cli()
        assert cli
        os.kill(cli.pid, signal.SIGKILL)
        failed = await supervisor.wait("a", lambda r: r.state == "failed", LIMIT_SECONDS)
        assert failed.launch
        assert (failed.launch.how, failed.launch.signal) == ("killed", signal.SIGKILL)
        (approval,) = await supervisor.approvals.list()
        assert approval.status == "cancelled"
        await supervisor.resume("a", prompt="what was it?")
        resumed = await turned(supervisor, 2)
        assert resumed.claude_session_id == first.claude_session_id
        assert "remember the horse" in here.model.requests[-1].everything
        assert ran(lab) == 0
        log = await log_of(supervisor)
        assert log.said() == ["Hello.", "I count.", "Bash", "A horse."]
        assert_counted_once(lab, resumed, log)
        await stopped(here, supervisor, "a")


async def test_resumed_and_forked(lab: Lab) -> None:
    """A session that is forked, then resumed: two conversations, and no cost counted twice"""
    async with house(lab, ["Hello.", "I am b.", "I am a."]) as here, here.open() as supervisor:
        await make(supervisor, here.place, "a", "remember the horse")
        await turned(supervisor, 1)
        await stopped(here, supervisor, "a")
        forked = await supervisor.fork("a", by=ADA, name="b", prompt="now b")
        # A fork is what the conversation is when its process reads it.
        await turned(supervisor, 1, "b")
        await supervisor.resume("a", prompt="now a")
        await turned(supervisor, 2)
        for name in "ab":
            record = supervisor.get(name)
            assert_counted_once(lab, record, await log_of(supervisor, name))
            id_ = str(record.claude_session_id)
            transcript = bridle.read_transcript(id_, lab.cwd, lab.config_dir)
            assert prompts(transcript.branch()) == ["remember the horse", f"now {name}"]
        assert forked.forked_from == supervisor.get("a").id
        totals = [result.total_cost_usd for result in results(await log_of(supervisor))]
        lab.saw("totals begin at 0 again" if lab.is_old else "totals go on from those before")
        assert (totals[1] > totals[0] + 1e-9) is not lab.is_old
        await stopped(here, supervisor, "a", "b")


def results(log: Log) -> list[Result]:
    return [message for message in log.messages() if isinstance(message, Result)]


def assert_counted_once(lab: Lab, record: SessionRecord, log: Log) -> None:
    """The record has what each process told: old ones their totals, new ones each turn's cost."""
    cost = 0.0
    for launch in log.launches:
        told = results(log.of_launch(launch))
        if lab.is_old:
            cost += told[-1].total_cost_usd
        else:
            used = (result.model_usage_since_last_result or {} for result in told)
            cost += sum(use.cost_usd for models in used for use in models.values())
    assert cost > 0
    assert record.cost_usd == pytest.approx(cost)


#: One that left its session, and one that nothing marks as ours.
LEAVE = """
setsid nohup sleep 300 > /dev/null 2>&1 &
echo $! > one
env -i setsid sh -c 'echo $$ > two; exec sleep 300' > /dev/null 2>&1 &
"""


async def test_stopped_with_orphans(lab: Lab) -> None:
    """A stop by a later controller ends what the Bash tool has left behind, and tells the exit"""
    orphans = [Fifo(lab.cwd / name) for name in ("one", "two")]
    (lab.cwd / "leave.sh").write_text(LEAVE)
    leave = Turn(tool_use("Bash", command="bash leave.sh", description="leave"))
    async with house(lab, [leave, "Left."], policy="autonomous") as here:
        first = await here.start(agents=GO)
        pids = [psutil.Process(int(await orphan.read())) for orphan in orphans]
        await first.kill()
        async with here.open() as supervisor:
            await turned(supervisor, 1)
            assert all(process.is_running() for process in pids)
            await stopped(here, supervisor, "a")
        assert not any(map(is_alive, pids))
