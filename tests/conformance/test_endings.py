"""Endings: EOF, signals, malformed input."""

from __future__ import annotations

import asyncio
import signal

from bridle.errors import KitError
from bridle.protocol.messages import Result
from bridle.protocol.requests import Initialize
from bridle.testing import Hold, Turn

from .lab import BASH, Lab, last_output


async def test_eof_idle(lab: Lab) -> None:
    """EOF on stdin while idle: exit 0"""
    async with lab.run(initialize=Initialize()) as run:
        run.cli.close_stdin()
        assert await run.cli.exit_code() == 0


async def test_eof_busy(lab: Lab) -> None:
    """EOF on stdin in mid-turn: the turn is finished first, then exit 0"""
    hold = Hold()
    async with lab.run([Turn("Half", hold, " done.")], initialize=Initialize()) as run:
        run.cli.prompt("go")
        await asyncio.wait_for(hold.reached.wait(), 60)
        run.cli.close_stdin()
        hold.release()
        assert await run.cli.exit_code() == 0
        (result,) = run.cli.messages(Result)
        assert result.subtype == "success"


async def test_eof_pending(lab: Lab) -> None:
    """EOF on stdin with a permission pending: the request fails, the model goes on"""
    async with lab.run([Turn(BASH), "I see."], initialize=Initialize()) as run:
        run.cli.prompt("go")
        await run.cli.request()
        run.cli.close_stdin()
        assert await run.cli.exit_code() == 0
        text, is_error = last_output(run.cli)
        assert (lab.exists("x.txt"), is_error) == (False, True)
        assert "permission" in text


async def _signalled(lab: Lab, number: signal.Signals, pending: bool) -> int:
    async with lab.run([Turn(BASH), "Never."], initialize=Initialize()) as run:
        if pending:
            run.cli.prompt("go")
            await run.cli.request()
        run.cli.signal(number)
        code = await run.cli.exit_code()
        assert not lab.exists("x.txt")
        return code


async def test_sigint(lab: Lab) -> None:
    """SIGINT while idle: exit 0"""
    assert await _signalled(lab, signal.SIGINT, pending=False) == 0


async def test_sigint_pending(lab: Lab) -> None:
    """SIGINT with a permission pending: exit 0, the tool does not run"""
    assert await _signalled(lab, signal.SIGINT, pending=True) == 0


async def test_sigterm(lab: Lab) -> None:
    """SIGTERM while idle: exit 143"""
    assert await _signalled(lab, signal.SIGTERM, pending=False) == 143


async def test_sigterm_pending(lab: Lab) -> None:
    """SIGTERM with a permission pending: exit 143, the tool does not run"""
    assert await _signalled(lab, signal.SIGTERM, pending=True) == 143


async def test_sigkill_pending(lab: Lab) -> None:
    """SIGKILL with a permission pending: the tool does not run"""
    assert await _signalled(lab, signal.SIGKILL, pending=True) == -9


async def _written(lab: Lab, line: bytes) -> None:
    async with lab.run(["Hi."], initialize=Initialize()) as run:
        run.cli.write(line)
        run.cli.prompt("hi")
        try:
            await run.cli.result(limit=20)
        except KitError:
            lab.saw(f"exits with {await run.cli.exit_code()}")
        else:
            lab.saw("survived")


async def test_malformed_input(lab: Lab) -> None:
    """A malformed line on stdin"""
    await _written(lab, b'{"type": "user", broken\n')
    assert lab.observations == ["exits with 1"]


async def test_blank_line(lab: Lab) -> None:
    """A blank line on stdin"""
    await _written(lab, b"\n")
    assert lab.observations == (["exits with 1"] if lab.is_old else ["survived"])


async def test_unknown_type(lab: Lab) -> None:
    """A line of an unknown type on stdin"""
    await _written(lab, b'{"type": "never_heard_of"}\n')
    assert lab.observations == (["exits with 1"] if lab.is_old else ["survived"])
