"""A server in the background: started until it is ready, and ended until it is gone.

Owns the process of it; what it serves is `serving`'s. Who is ended is who listens on the home's
socket, as the kernel knows it: a number in a file may be another's by now.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, Any

from ..home.private import made_private
from ..process.interpreter import own_program
from .client.find import is_ours, socket_of
from .commands.serving import log_file
from .context import Context
from .errors import CommandError, NoServer

READY_SECONDS = 60.0
#: Longer than requests and streams may take to come to their end.
END_SECONDS = 30.0


def start_detached(here: Context) -> dict[str, Any]:
    """What the server says when it is ready. CommandError with its words, if it ends instead."""
    import msgspec

    home = here.settings.home
    made_private(home)
    with _private(log_file(home)) as log:
        child = subprocess.Popen(
            own_program("bridle.cli", *_flags(here)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
    assert child.stdout
    with child.stdout:
        line = _first_line(child.stdout.fileno(), READY_SECONDS)
    if line:
        told: dict[str, Any] = msgspec.json.decode(line, type=dict[str, Any])
        return told
    if child.poll() is None:
        child.kill()
    child.wait()
    raise CommandError(_last_words(home), f"{log_file(home)} has all that it said")


def _flags(here: Context) -> list[str]:
    """The same settings for the other process."""
    settings = here.settings
    words = ["--home", str(settings.home)]
    if settings.file:
        words += ["--config", str(settings.file)]
    words += ["up", "--json"]
    for name, value in here.flags.items():
        if name in ("host", "port", "size", "claude"):
            words += [f"--{name}", str(value)]
        elif name in ("allow_remote", "allow_unseen", "stop_agents") and value:
            words.append(f"--{name.replace('_', '-')}")
    return words


def _private(path: Path) -> IO[bytes]:
    flags = os.O_NOFOLLOW | os.O_CLOEXEC
    return open(path, "wb", opener=lambda name, mode: os.open(name, mode | flags, 0o600))


def _first_line(fd: int, seconds: float) -> bytes:
    """What comes up to the first newline; nothing if it ends or takes longer."""
    until, data = time.monotonic() + seconds, b""
    while b"\n" not in data:
        left = until - time.monotonic()
        if left <= 0 or not select.select([fd], [], [], left)[0]:
            return b""
        more = os.read(fd, 65536)
        if not more:
            return b""
        data += more
    return data


def _last_words(home: Path) -> str:
    with contextlib.suppress(OSError):
        said = [line for line in log_file(home).read_text(errors="replace").splitlines() if line]
        if said:
            return said[-1].removeprefix("bridle: ")
    return "the server ended before it was ready"


def end_server(home: Path) -> int:
    """End it, and wait until it has: its pid. NoServer if there is none."""
    pid = _listener(socket_of(home))
    with _ended(pid) as has_ended:
        os.kill(pid, signal.SIGTERM)
        if not has_ended(END_SECONDS):
            raise CommandError(
                f"the server (process {pid}) has not ended in {END_SECONDS:g} s",
                f"end it with `kill -9 {pid}`: agents and all that is stored survive it",
            )
    return pid


def _listener(path: Path) -> int:
    """The pid of who listens on this socket."""
    if not is_ours(path):
        raise NoServer
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(2)
        try:
            probe.connect(str(path))
        except OSError:
            raise NoServer from None
        if sys.platform == "linux":
            size = struct.calcsize("3i")
            pid: int = struct.unpack(
                "3i", probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
            )[0]
            return pid
        local_peerpid = 2
        return probe.getsockopt(0, local_peerpid)


@contextlib.contextmanager
def _ended(pid: int) -> Any:
    """Gives a function that waits for its end. Taken before it is told, so that it is the same."""
    if sys.platform == "linux":
        with contextlib.suppress(ProcessLookupError):
            fd = os.pidfd_open(pid)
            try:
                yield lambda seconds: bool(select.select([fd], [], [], seconds)[0])
            finally:
                os.close(fd)
            return
    yield lambda seconds: _is_gone(pid, seconds)


def _is_gone(pid: int, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False
