"""Interrupts."""

from __future__ import annotations

import asyncio

import psutil

from bridle.protocol.messages import Result
from bridle.testing import Hold, Turn, tool_use

from .lab import BASH, Fifo, Lab
from .talk import Desk, Judge, hear, reached


def how_it_ended(result: Result) -> str:
    assert result.is_interrupted
    reason = f", `{result.terminal_reason}`" if result.terminal_reason else ""
    return f"`{result.subtype}`, `is_error: {str(result.is_error).lower()}`{reason}"


async def test_interrupt_stream(lab: Lab) -> None:
    """Interrupt in mid-stream: the turn ends, the next one works"""
    hold = Hold()
    async with lab.session([Turn("A long story", hold, "that never ends."), "Next."]) as talk:
        turn = await talk.session.send("tell")
        await reached(hold)
        await talk.session.interrupt()
        lab.saw(how_it_ended((await hear(turn)).result))
        assert (await talk.say("next")).result.result == "Next."


async def test_interrupt_pending(lab: Lab) -> None:
    """Interrupt with a permission pending: it is withdrawn, and can't be allowed any more"""
    desk = Desk()
    async with lab.session([Turn(BASH), "Next."], approver=desk) as talk:
        turn = await talk.session.send("go")
        question = await desk.question()
        await talk.session.interrupt()
        assert await question.withdrawn()
        lab.saw(how_it_ended((await hear(turn)).result))
        assert (await talk.say("next")).result.result == "Next."
        assert not lab.exists("x.txt")


async def test_interrupt_tool(lab: Lab) -> None:
    """Interrupt while a command runs: the command is ended"""
    ready = Fifo(lab.cwd / "ready")
    bash = tool_use("Bash", command="echo $$ > ready; exec sleep 300", description="wait")
    async with lab.session([Turn(bash), "Next."], approver=Judge()) as talk:
        turn = await talk.session.send("go")
        command = psutil.Process(int(await ready.read()))
        assert command.is_running()
        await talk.session.interrupt()
        gone, _ = await asyncio.to_thread(psutil.wait_procs, [command], 10)
        assert gone
        lab.saw(how_it_ended((await hear(turn)).result))


async def test_interrupt_idle(lab: Lab) -> None:
    """Interrupt while nothing runs: answered, and the next turn works"""
    async with lab.session(["Next."]) as talk:
        await talk.session.interrupt()
        assert (await talk.say("next")).result.result == "Next."
