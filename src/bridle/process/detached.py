"""A CLI over a spool: started through a shim, or found running; read, written to and ended.

Owns what a controller does for one launch while it is there. The CLI and its shim outlive it:
`release` lets them go, and another controller takes them up with `follow`. Knows nothing of
messages.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping

from ..errors import LaunchFailed
from .complaints import Complaints
from .feed import Feed
from .follow import Following, OpenFile
from .lifetime import Lifetime
from .program import Program
from .spawn import spawn_shim
from .spec import LaunchSpec
from .spool import ProcessId, Spool
from .stop import Ladder, uncancelled
from .transport import Exit, Receiver, StopLimits, Stopped
from .tree import Tree
from .wake import ANYTHING, Wakes

#: How long a shim may take to begin; it takes some 20 ms.
BEGIN_SECONDS = 10.0


class DetachedProcess:
    """One launch of one CLI. `inherited` is the environment that it starts from.

    `launch` names it among all launches. `is_gated`: hooks of ours must be called, whatever the
    settings say. `version`: of a CLI that runs already, as it was known when it was started.
    """

    def __init__(
        self,
        spec: LaunchSpec,
        spool: Spool,
        wakes: Wakes,
        launch: str,
        inherited: Mapping[str, str] | None = None,
        *,
        is_gated: bool = False,
        version: str | None = None,
    ) -> None:
        self.launch = launch
        self.spool = spool
        self._program = Program(spec, launch, inherited, is_gated=is_gated)
        self._spec = spec
        self._version = version
        self._lifetime = Lifetime(spool, wakes, self._changed, self._exited)
        self._feed = Feed(spool)
        self._complaints = Complaints(self._complained)
        self._receiver: Receiver | None = None
        self._output: Following | None = None
        self._errors: Following | None = None
        self._over = asyncio.Event()
        self._is_frozen = False
        self._stopping: asyncio.Task[Stopped] | None = None
        #: Is told when something was written to the inbox, by whomever.
        self.inbox_changed: Callable[[], None] = lambda: None

    @property
    def version(self) -> str | None:
        return self._program.version or self._version

    @property
    def argv(self) -> tuple[str, ...]:
        return self._program.argv

    @property
    def exit(self) -> Exit | None:
        return self._lifetime.exit

    @property
    def stderr(self) -> str:
        return self._complaints.tail

    @property
    def pid(self) -> int:
        """The shim's."""
        if self._lifetime.shim is None:
            raise LaunchFailed("the CLI has not been started")
        return self._lifetime.shim.pid

    @property
    def offset(self) -> int:
        """How much of the output was handed over."""
        return self._output.offset if self._output else 0

    @property
    def stderr_offset(self) -> int:
        """How much of stderr was told."""
        return self._errors.offset - self._complaints.untold if self._errors else 0

    # --- starting

    async def start(self, receiver: Receiver) -> None:
        await self.spawn()
        self.follow(receiver)
        # While it starts: to ask before would take twice the time.
        await self.identify()

    async def identify(self) -> None:
        """Ask the program for its version, where nothing else has told it."""
        await self._program.identify()

    async def spawn(self) -> ProcessId:
        """Start a shim, which starts the CLI; which process it is. Nothing is told yet."""
        self._program.find()
        try:
            self.spool.make()
            self._lifetime.begin()
        except OSError as error:  # the disk is full, or no more folders can be watched
            raise LaunchFailed(f"can't start {self.argv[0]}: {error}") from error
        try:
            pid = spawn_shim(self.spool.folder, self.argv, self._program.env, self._spec.cwd)
            self._lifetime.expect(pid)
            return await self._begun()
        except BaseException:
            self.release()
            raise

    async def _begun(self) -> ProcessId:
        try:
            shim = await self._lifetime.met(BEGIN_SECONDS)
        except BaseException as error:
            self._lifetime.kill_child()
            if isinstance(error, TimeoutError):
                late = f"can't start {self.argv[0]}: no shim in {BEGIN_SECONDS:g} s"
                raise LaunchFailed(late) from error
            raise
        if shim is None:
            raise LaunchFailed(f"can't start {self.argv[0]}: {self._why_not()}")
        return shim

    def _why_not(self) -> str:
        if self.spool.is_abandoned():
            return "the launch was abandoned"
        words = self.spool.read("stderr", 0, 1 << 16).decode("utf-8", "replace").split("\n")
        return next((line for line in reversed(words) if line.strip()), "its shim ended at once")

    # --- reading

    def follow(self, receiver: Receiver, start_offset: int = 0, stderr_offset: int = 0) -> None:
        """From now on `receiver` is told, from these places on, whether or not the CLI still runs.

        Where another controller may have been about to start it, `Spool.abandon` comes first.
        """
        output = OpenFile(self.spool.path("stdout"))
        self._receiver = receiver
        self._output = Following(output, start_offset, receiver.received, self._end)
        errors = _Errors(self.spool)
        self._errors = Following(errors, stderr_offset, self._complaints.add, self._end)
        self.watch()
        # Not now: whoever calls this is not ready to be told.
        self.resume_reading()
        if self.exit:
            self._exited()

    def watch(self) -> None:
        """Look after one that another controller has started: it can be stopped from now on."""
        self._lifetime.begin()
        self._lifetime.settle()

    def pause_reading(self) -> None:
        """Tell nothing that is read until `resume_reading`: it is kept in the spool."""
        for file in self._files():
            file.pause()

    def resume_reading(self) -> None:
        for file in self._files():
            file.resume()

    def _files(self) -> list[Following]:
        return [file for file in (self._output, self._errors) if file]

    def _changed(self, name: str) -> None:
        if self._output and name in ("stdout", ANYTHING):
            self._output.woken()
        if self._errors and name in ("stderr", ANYTHING):
            self._errors.woken()
        if name in ("inbox", ANYTHING):
            self.inbox_changed()

    def _complained(self, text: str) -> None:
        if self._receiver:
            self._receiver.complained(text)

    # --- writing

    def write(self, data: bytes) -> None:
        self._feed.write(data)

    def close_input(self) -> None:
        if self._lifetime.shim:
            self._feed.close()

    # --- ending

    def _exited(self) -> None:
        self._feed.abandon()
        for file in self._files():
            file.finish()

    def _end(self) -> None:
        """One of the files is at its end. The last words must be known when the end is told."""
        if not any(file.is_open for file in self._files()) and not self._over.is_set():
            self._over.set()
            self._complaints.flush()
            if self._receiver:
                self._receiver.ended()

    async def exited(self, limit: float) -> bool:
        """Wait until the CLI is gone; False if it is not in this time."""
        return await self._lifetime.over(limit)

    def kill(self) -> None:
        """Let none of it do anything more, not even read what is in the inbox; then `stop` it."""
        self._tree().kill()

    async def stop(self, limits: StopLimits, *, asked: bool = False) -> Stopped:
        """Close stdin, give it time, then end the whole tree. Again gives the same answer.

        What it has written is told to its end, also after this where the reading is paused.
        """
        if self._stopping is None:
            self._stopping = asyncio.ensure_future(self._stop(limits, asked=asked))
        try:
            return await uncancelled(self._stopping)
        except OSError:
            self._stopping = None  # nothing could be looked at: it may be tried again
            raise

    async def _stop(self, limits: StopLimits, *, asked: bool) -> Stopped:
        if self._is_frozen:
            self.unpause()
        if not self._lifetime.is_begun:
            # Nobody would tell of its end: all that carry the marker are ended.
            if not self._tree().look():
                return Stopped("gone", 0.0)
            limits = StopLimits(0.0, limits.signal, limits.total)
        self.close_input()
        try:
            stopped = await Ladder(self, limits, self._tree()).descend("asked" if asked else "eof")
        finally:
            self._lifetime.close()
            self._exited()
        if self._output and not self._output.is_paused:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._over.wait(), limits.total - stopped.seconds)
        return stopped

    async def drained(self) -> None:
        """Until all that it has written was told; at once if nobody follows it."""
        if self._output:
            await self._over.wait()

    def _tree(self) -> Tree:
        """All that carry the marker, and all below the shim."""
        shim = self._lifetime.shim
        seen = shim.seen() if shim else None
        return Tree(seen.pid, self.launch, seen.born) if seen else Tree(0, self.launch)

    async def pause(self) -> None:
        """Stop all of it where it is, for as long as nothing can be written."""
        self._is_frozen = True
        await self._tree().freeze()

    def unpause(self) -> None:
        """Let all of it go on, whoever has paused it."""
        self._is_frozen = False
        self._tree().thaw()

    def release(self) -> None:
        """Let go of it, and end nothing: nothing is told from now on."""
        self._receiver = None
        self.inbox_changed = lambda: None
        self._complaints.flush()
        self._feed.abandon()
        self._lifetime.close()
        for file in self._files():
            file.close()


class _Errors:
    """The file of stderr, opened when it is read: there is seldom anything in it."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool

    def read(self, start: int, size: int) -> bytes:
        return self._spool.read("stderr", start, size)

    def size(self) -> int:
        return self._spool.size("stderr")

    def close(self) -> None:
        pass
