"""Look after a home's agents until told to end: `python -m bridle.supervisor`.

Owns the process around a supervisor: its arguments, its signals, and the words that it prints.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from pathlib import Path

from ..errors import BridleError
from ..process.interpreter import own_program
from .opening import SIZE, default_home, open_supervisor
from .supervisor import Recovered, Supervisor
from .unit import unit_of

EPILOG = """\
SIGTERM or Ctrl-C ends it; its agents run on, and are found again when it is started. With
--stop-agents they are ended with it. What would end them against your will: docs/supervisor.md."""


def main(argv: list[str] | None = None) -> int:
    options = _parser().parse_args(argv)
    if options.unit:
        _say(unit(options.home))
        return 0
    try:
        return asyncio.run(_run(options))
    except BridleError as error:
        sys.stderr.write(f"bridle: {error}\n")
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m bridle.supervisor", description="Look after agents.", epilog=EPILOG
    )
    home = default_home()
    parser.add_argument("--home", type=Path, default=home, help=f"where all is kept ({home})")
    parser.add_argument("--size", type=int, default=SIZE, help=f"agents at a time ({SIZE})")
    parser.add_argument(
        "--stop-agents", action="store_true", help="end the agents when it is ended"
    )
    parser.add_argument(
        "--unit", action="store_true", help="print a systemd unit for it, and do nothing else"
    )
    return parser


async def _run(options: argparse.Namespace) -> int:
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    async with open_supervisor(options.home, size=options.size) as supervisor:
        _say(f"looking after the agents of {options.home}")
        _say(_words(supervisor.recovered))
        await told.wait()
        if options.stop_agents:
            await supervisor.stop_all("the end of the supervisor")
        _say(_farewell(supervisor))
    return 0


def _words(recovered: Recovered) -> str:
    found = (
        f"{len(recovered.alive)} agents were found at work, {len(recovered.ended)} had ended, "
        f"{len(recovered.pending)} approvals wait ({recovered.seconds:.1f} s)"
    )
    names = [f"  {session} ended while nobody looked" for session in recovered.ended]
    return "\n".join([found, *names])


def _farewell(supervisor: Supervisor) -> str:
    return f"ended; {supervisor.running or 'no'} agents run on"


def unit(home: Path) -> str:
    """A systemd unit that does not end the agents when it is restarted."""
    program = own_program("bridle.supervisor", "--home", str(home))
    return unit_of("python -m bridle.supervisor", program)


def _say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
