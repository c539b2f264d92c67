"""When the CLI of a spool ends, and how; and when its shim does.

Owns the watching of both, whoever started them and whenever: the spool's own word, and the life of
the processes where nobody is left to give one. Reads no output and ends nothing, except a CLI that
has outlived its shim.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Callable

from .exits import Watching, leave, reap_left, watch_exit, watch_life
from .spool import ProcessId, Spool
from .transport import Exit
from .wake import ANYTHING, Wakes, Watch

#: How long a shim may take to leave after its CLI; it stays while there are orphans.
LEAVE_SECONDS = 0.25
#: How long a CLI may take to end after its shim was killed, which it is told with SIGTERM.
ORPHAN_SECONDS = 2.0
#: How long to wait where the spool or a process can't be looked at: no descriptor is left, perhaps.
RETRY_SECONDS = 0.5

_log = logging.getLogger("bridle.process")


class Lifetime:
    """One launch's. `changed` is told the names of the spool's files, `ended` the CLI's end."""

    def __init__(
        self,
        spool: Spool,
        wakes: Wakes,
        changed: Callable[[str], None],
        ended: Callable[[], None],
    ) -> None:
        self._spool = spool
        self._wakes = wakes
        self._tell_changed = changed
        self._tell_ended = ended
        self.shim: ProcessId | None = None
        self.exit: Exit | None = None
        #: The shim, while it is our child and we have not reaped it.
        self._child: int | None = None
        self._watch: Watch | None = None
        self._life: Watching | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._retry: asyncio.TimerHandle | None = None
        self._met = asyncio.Event()
        self._cli_gone = asyncio.Event()
        self._shim_gone = asyncio.Event()

    @property
    def is_begun(self) -> bool:
        return self._watch is not None or self._cli_gone.is_set()

    def begin(self) -> None:
        """Watch, then look: what happens in between is seen twice, not never."""
        if not self.is_begun:
            self._watch = self._wakes.watch(self._spool.folder, self._changed)
            self._look()

    def expect(self, pid: int) -> None:
        """This child of ours is becoming the shim."""
        reap_left()
        self._child = pid
        self._life = watch_exit(pid, self._shim_ended)

    async def met(self, limit: float) -> ProcessId | None:
        """The shim, when it has begun; None if it ended before."""
        async with asyncio.timeout(limit):
            await self._met.wait()
        return self.shim

    def kill_child(self) -> None:
        """End a shim that has not begun. Its number is its own until it is reaped."""
        if self._child:
            os.kill(self._child, signal.SIGKILL)

    def settle(self) -> None:
        """Nobody is becoming the shim: if there is none, there is no CLI either."""
        if self.shim is None and not self._spool.is_held():
            self._look()
            if self.shim is None:
                self._shim_ended(Exit())

    async def over(self, limit: float) -> bool:
        """Wait for the CLI's end, and for a moment for the shim's."""
        await _wait(self._cli_gone, limit)
        if self._cli_gone.is_set():
            await _wait(self._shim_gone, LEAVE_SECONDS)
        return self._cli_gone.is_set()

    def close(self) -> None:
        """Watch no longer. Nothing is told from now on."""
        self._unwatch()
        if self._life:
            self._life.close()
            self._life = None
        if self._child:
            leave(self._child)
            self._child = None
        for timer in (self._timer, self._retry):
            if timer:
                timer.cancel()

    def _unwatch(self) -> None:
        if self._watch:
            self._watch.close()
            self._watch = None

    def _changed(self, name: str) -> None:
        if name in ("exit", "shim", ANYTHING):
            self._look()
        self._tell_changed(name)

    def _look(self) -> None:
        """What the spool says now; or soon, where it can't be asked."""
        try:
            self._ask()
        except OSError as error:
            self._again(self._look, error)

    def _again(self, do: Callable[[], None], error: OSError) -> None:
        _log.warning("%s can't be looked at: %s; it will be tried again", self._spool.folder, error)
        self._retry = asyncio.get_running_loop().call_later(RETRY_SECONDS, do)

    def _ask(self) -> None:
        if self.shim is None and (shim := self._spool.shim()):
            self.shim = shim
            self._met.set()
            if self._life is None:
                self._life = watch_life(shim.pid, self._is_shim_alive, self._shim_ended)
        if self.exit is None and (status := self._spool.exit()):
            self._ended(status)

    def _is_shim_alive(self) -> bool:
        # Where a birth can't be told, its lock can.
        assert self.shim
        return self.shim.seen() is not None if self.shim.born else self._spool.is_held()

    def _shim_ended(self, _: Exit) -> None:
        self._life = self._child = None
        self._shim_gone.set()
        self._find_out()
        self._met.set()

    def _find_out(self) -> None:
        try:
            self._ask()
            if self.exit is None:
                self._outlived()
        except OSError as error:
            self._again(self._find_out, error)

    def _outlived(self) -> None:
        """The shim was killed and could not tell how the CLI ended, or whether it has."""
        cli = self._spool.cli()
        if cli is None or cli.seen() is None:
            self._ended(Exit())
            return

        def is_alive() -> bool:
            return cli.seen() is not None

        def kill() -> None:
            if seen := cli.seen():
                seen.signal(signal.SIGKILL)

        self._life = watch_life(cli.pid, is_alive, lambda _: self._ended(Exit()))
        # Nobody can talk to it any more.
        self._timer = asyncio.get_running_loop().call_later(ORPHAN_SECONDS, kill)

    def _ended(self, status: Exit) -> None:
        if self.exit is None:
            self.exit = status
            self._cli_gone.set()
            self._unwatch()
            if self._timer:
                self._timer.cancel()
            self._tell_ended()


async def _wait(event: asyncio.Event, limit: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(limit):
            await event.wait()
