"""Starting a CLI over pipes, by way of the fork server of this process.

Owns the server's life (one for each process, started with the first CLI) and the request. A CLI's
guardian lives for as long as the socket `Guarded.life` is open: closing it ends all that is left.
"""

from __future__ import annotations

import asyncio
import contextlib
import marshal
import os
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from ..errors import InvalidLaunch, LaunchFailed
from .arguments import MARKER
from .census import see
from .fork_server import END, FDS, HEAD_BYTES, PLACE_BYTES, PLACEHOLDER
from .spawn import checked
from .spec import StrPath
from .transport import Exit

#: How long the start of a program may take; it takes some milliseconds.
START_SECONDS = 10.0
LOOK_SECONDS = 0.001

_PROGRAM = str(Path(__file__).with_name("fork_server.py"))


class Guarded(NamedTuple):
    """A CLI that runs, our ends of its pipes, and the socket of its guardian. The caller owns all
    of them."""

    pid: int
    guardian: int
    stdin: int
    stdout: int
    stderr: int
    life: socket.socket
    #: What the guardian has said already of the CLI's end.
    said: bytes


class Guardian:
    """Our side of one. `ended` is told once when the CLI is gone, and how that was."""

    def __init__(self, guarded: Guarded, ended: Callable[[Exit], None]) -> None:
        self.pid = guarded.guardian
        #: It has gone as well: nothing that the CLI started is left.
        self.gone = asyncio.Event()
        self._life = guarded.life
        self._said = guarded.said
        self._tell: Callable[[Exit], None] | None = ended
        self._is_read = True
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._life, self._readable)
        if self._said:
            self._loop.call_soon(self._ended)

    def close_stdin(self) -> None:
        """The CLI's stdin ends when we have closed it, too."""
        with contextlib.suppress(OSError):  # it has gone
            self._life.send(END)

    def close(self) -> None:
        """Nothing is told from now on; what is left of the CLI is killed."""
        self._tell = None
        if self._is_read:
            self._loop.remove_reader(self._life)
            self._is_read = False
        self._life.close()

    def _readable(self) -> None:
        try:
            said = self._life.recv(100)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            said = b""
        self._said += said
        if not said:
            self._loop.remove_reader(self._life)
            self._is_read = False
            self._look()
        if not said or self._said.endswith(b"\n"):
            self._ended()

    def _look(self) -> None:
        """It has closed its socket, and is gone as a process a moment later."""
        if see(self.pid):
            self._loop.call_later(LOOK_SECONDS, self._look)
        else:
            self.gone.set()

    def _ended(self) -> None:
        tell, self._tell = self._tell, None
        if tell is None:
            return
        match self._said.split():
            case [b"ended", code, b"-"]:
                tell(Exit(code=int(code)))
            case [b"ended", b"-", number]:
                tell(Exit(signal=int(number)))
            case _:  # it was killed, and the CLI with it
                tell(Exit())


class _Server:
    """The fork server of this process."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        place = {PLACEHOLDER: " " * PLACE_BYTES}
        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", _PROGRAM, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=place,
                cwd="/",
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        # It ends with us. Popen would otherwise wait for it, and warn that it is running.
        process.returncode = 0
        self.socket = ours

    def ask(self, request: bytes, fds: Sequence[int]) -> None:
        assert len(fds) == FDS
        socket.send_fds(self.socket, [len(request).to_bytes(HEAD_BYTES, "big")], fds)
        self.socket.sendall(request)


_lock = threading.Lock()
_server: _Server | None = None
#: What a process that is forked from this one must not keep: a CLI would outlive us.
_lives: weakref.WeakSet[socket.socket] = weakref.WeakSet()


def start_guarded(argv: Sequence[str], env: dict[str, str], cwd: StrPath | None = None) -> Guarded:
    """Start it; LaunchFailed says why it can't be started."""
    folder, command = checked(argv, env, cwd)
    mark = f"{MARKER}={env.get(MARKER, '')}"
    if len(mark.encode()) >= PLACE_BYTES:
        raise InvalidLaunch("it would run too deep inside of other agents")
    request = (command, env, str(folder.absolute()), mark)
    fds: list[int] = []
    try:
        if "\0" in "".join((*command, *env, *env.values())):
            raise ValueError("embedded null byte")
        for _ in range(3):
            fds += os.pipe()
        child_in, stdin, stdout, child_out, stderr, child_err = fds
        life = _asked(marshal.dumps(request), (child_in, stdin, child_out, child_err))
        pid, guardian, said = _started(life)
    except (OSError, ValueError) as error:
        for fd in fds:
            os.close(fd)
        why = getattr(error, "strerror", None) or error
        raise LaunchFailed(f"can't start {argv[0]}: {why}") from error
    for fd in (child_in, child_out, child_err):
        os.close(fd)
    return Guarded(pid, guardian, stdin, stdout, stderr, life, said)


def _asked(request: bytes, fds: Sequence[int]) -> socket.socket:
    """The guardian's socket. A server that has gone is started again, once."""
    global _server  # noqa: PLW0603 - one server for all sessions of the process
    ours, theirs = socket.socketpair()
    _lives.add(ours)
    try:
        with _lock, theirs:
            for is_last in (False, True):
                _server = _server or _Server()
                try:
                    _server.ask(request, (*fds, theirs.fileno()))
                    break
                except OSError:
                    _server.socket.close()
                    _server = None
                    if is_last:
                        raise
    except BaseException:
        ours.close()
        raise
    return ours


def _started(life: socket.socket) -> tuple[int, int, bytes]:
    """The pids of the CLI and of its guardian, and what that has said since."""
    life.settimeout(START_SECONDS)
    said = b""
    try:
        while b"\n" not in said and (more := life.recv(100)):
            said += more
        first, _, rest = said.partition(b"\n")
        match first.split():
            case [b"started", pid, guardian]:
                life.setblocking(False)
                return int(pid), int(guardian), rest
            case [b"failed", number]:
                raise OSError(int(number), os.strerror(int(number)))
            case _:
                raise OSError("its guardian ended at once")
    except BaseException:
        life.close()
        raise


def _forget() -> None:
    """In a process that was forked from this one: what is ours is not its own."""
    global _server, _lock  # noqa: PLW0603
    _lock = threading.Lock()
    for one in (*_lives, *([_server.socket] if _server else ())):
        with contextlib.suppress(OSError):
            one.close()
    _server = None


os.register_at_fork(after_in_child=_forget)
