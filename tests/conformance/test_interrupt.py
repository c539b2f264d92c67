"""Interrupts."""

from __future__ import annotations

import asyncio

import psutil

from bridle.errors import AlreadyWithdrawn
from bridle.protocol.answers import Interrupted
from bridle.protocol.events import RequestWithdrawn
from bridle.protocol.messages import Result
from bridle.protocol.permissions import Allow
from bridle.protocol.requests import Initialize, Interrupt
from bridle.testing import Hold, Turn, tool_use

from .lab import BASH, Fifo, Lab, allow, answered


def how_it_ended(result: Result) -> str:
    reason = f", `{result.terminal_reason}`" if result.terminal_reason else ""
    return f"`{result.subtype}`, `is_error: {str(result.is_error).lower()}`{reason}"


async def test_interrupt_stream(lab: Lab) -> None:
    """Interrupt in mid-stream: the turn ends, the next one works"""
    hold = Hold()
    async with lab.run(
        [Turn("A long story", hold, "that never ends."), "Next."], initialize=Initialize()
    ) as run:
        run.cli.prompt("tell")
        await asyncio.wait_for(hold.reached.wait(), 60)
        answer = await answered(run.cli, Interrupt())
        assert isinstance(answer, Interrupted)
        result = await run.cli.result()
        lab.saw(how_it_ended(result))
        run.cli.prompt("next")
        assert (await run.cli.result()).result == "Next."


async def test_interrupt_pending(lab: Lab) -> None:
    """Interrupt with a permission pending: it is withdrawn, and can't be allowed any more"""
    async with lab.run([Turn(BASH), "Next."], initialize=Initialize()) as run:
        run.cli.prompt("go")
        event = await run.cli.request()
        await answered(run.cli, Interrupt())
        withdrawn = await run.cli.expect(lambda e: isinstance(e, RequestWithdrawn), "the cancel")
        assert isinstance(withdrawn, RequestWithdrawn)
        assert withdrawn.request_id == event.request_id
        try:
            run.cli.answer(event, Allow())
        except AlreadyWithdrawn:
            pass
        else:
            raise AssertionError("a withdrawn request was answered")
        lab.saw(how_it_ended(await run.cli.result()))
        run.cli.prompt("next")
        assert (await run.cli.result()).result == "Next."
        assert not lab.exists("x.txt")


async def test_interrupt_tool(lab: Lab) -> None:
    """Interrupt while a command runs: the command is ended"""
    ready = Fifo(lab.cwd / "ready")
    bash = tool_use("Bash", command="echo $$ > ready; exec sleep 300", description="wait")
    async with lab.run([Turn(bash), "Next."], initialize=Initialize(), respond=allow) as run:
        run.cli.prompt("go")
        command = psutil.Process(int(await ready.read()))
        assert command.is_running()
        await answered(run.cli, Interrupt())
        gone, _ = await asyncio.to_thread(psutil.wait_procs, [command], 10)
        assert gone
        lab.saw(how_it_ended(await run.cli.result()))


async def test_interrupt_idle(lab: Lab) -> None:
    """Interrupt while nothing runs: answered, and the next turn works"""
    async with lab.run(["Next."], initialize=Initialize()) as run:
        await answered(run.cli, Interrupt())
        run.cli.prompt("next")
        assert (await run.cli.result()).result == "Next."
