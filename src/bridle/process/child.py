"""A CLI over pipes: found, started, read, written to and ended. Its life is the caller's.

Owns the process, its pipes and its tree. Knows nothing of messages; installs no signal handler.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping

from ..errors import LaunchFailed
from ..ids import new_token
from .census import see
from .complaints import Complaints
from .find import FoundCli
from .fork_client import Guarded, Guardian, start_guarded
from .pipes import InputPipe, OutputPipe
from .program import Program
from .spec import LaunchSpec
from .stop import Ladder, uncancelled
from .transport import Exit, Receiver, StopLimits, Stopped
from .tree import Tree

#: How long the exit status may come after the end of the output.
STATUS_SECONDS = 0.25
#: How long a guardian may take to leave after its CLI; it stays while there are orphans.
LEAVE_SECONDS = 0.25


class ChildProcess:
    """One launch of one CLI. `inherited` is the environment that it starts from.

    `is_gated`: hooks of ours must be called, whatever the settings say.
    """

    def __init__(
        self,
        spec: LaunchSpec,
        inherited: Mapping[str, str] | None = None,
        *,
        is_gated: bool = False,
    ) -> None:
        self.launch = new_token(8)
        self._program = Program(spec, self.launch, inherited, is_gated=is_gated)
        self._spec = spec
        self._receiver: Receiver | None = None
        self._process: Guarded | None = None
        self._complaints = Complaints(self._complained)
        self._guardian: Guardian | None = None
        self._exit: Exit | None = None
        self._gone = asyncio.Event()
        self._has_ended = False
        self._stopping: asyncio.Task[Stopped] | None = None

    @property
    def version(self) -> str | None:
        return self._program.version

    @property
    def argv(self) -> tuple[str, ...]:
        return self._program.argv

    @property
    def exit(self) -> Exit | None:
        return self._exit

    @property
    def stderr(self) -> str:
        return self._complaints.tail

    @property
    def pid(self) -> int:
        if self._process is None:
            raise LaunchFailed("the CLI has not been started")
        return self._process.pid

    # --- starting

    def find(self) -> FoundCli:
        """Which program it will be, with its version where that is known without asking."""
        return self._program.find()

    async def identify(self) -> None:
        """Ask the program for its version, where nothing else has told it."""
        await self._program.identify()

    async def start(self, receiver: Receiver) -> None:
        program = self._program
        program.find()
        self._receiver = receiver
        self._process = process = start_guarded(program.argv, program.env, self._spec.cwd)
        self._input = InputPipe(process.stdin)
        self._output = OutputPipe(process.stdout, receiver.received, self._over)
        self._errors = OutputPipe(process.stderr, self._complaints.add, self._complaints.flush)
        self._guardian = Guardian(process, self._exited)
        # While it starts: to ask before would take twice the time.
        await self.identify()

    # --- talking

    def write(self, data: bytes) -> None:
        self._input.write(data)

    def close_input(self) -> None:
        if self._process and self._guardian:
            self._input.close()
            self._guardian.close_stdin()

    def _complained(self, text: str) -> None:
        if self._receiver:
            self._receiver.complained(text)

    # --- ending

    def _exited(self, status: Exit) -> None:
        self._exit = status
        self._input.abandon()
        # Its last words must be known when its end is told.
        self._errors.drain()
        self._errors.finish()
        self._output.finish()
        self._gone.set()
        if not self._output.is_open:
            self._end()

    def _over(self) -> None:
        """The output has ended. How the process did is worth waiting for, for a moment."""
        if self._exit:
            self._end()
        else:
            asyncio.get_running_loop().call_later(STATUS_SECONDS, self._end)

    def _end(self) -> None:
        if not self._has_ended and self._receiver:
            self._has_ended = True
            self._receiver.ended()

    async def exited(self, limit: float) -> bool:
        """Wait until the root of the tree is gone; False if it is not in this time."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._gone.wait(), limit)
        if self._gone.is_set() and self._guardian:
            # It stays only where something else is left.
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._guardian.gone.wait(), LEAVE_SECONDS)
        return self._gone.is_set()

    async def stop(self, limits: StopLimits, *, asked: bool = False) -> Stopped:
        """Close stdin, give it time, then end the whole tree. Again gives the same answer."""
        if self._process is None:
            return Stopped("gone", 0.0)
        if self._stopping is None:
            self._stopping = asyncio.ensure_future(self._stop(limits, asked=asked))
        return await uncancelled(self._stopping)

    async def _stop(self, limits: StopLimits, *, asked: bool) -> Stopped:
        self.close_input()
        try:
            ladder = Ladder(self, limits, self._tree())
            return await ladder.descend("asked" if asked else "eof")
        finally:
            self._close()

    def _tree(self) -> Tree:
        """All that carry the marker, and all below the guardian."""
        assert self._guardian
        seen = see(self._guardian.pid)
        return Tree(seen.pid, self.launch, seen.born) if seen else Tree(0, self.launch)

    def _close(self) -> None:
        self._input.abandon()
        self._output.close()
        self._errors.close()
        self._complaints.flush()
        if self._guardian:
            self._guardian.close()
        self._end()
