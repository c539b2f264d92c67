"""`bridle` commands as processes that need not import anything: forks of one that has.

A command of its own takes some tenths of a second to import what it needs; the tests run hundreds.
Owns the process that is forked, one for each worker of pytest. What differs from a real start: in
/proc a command has the environment of that process, so nobody finds it there by its mark.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

#: More than any request has.
MOST = 1 << 20
#: Seconds that a command may take.
LIMIT = 60.0


class Command:
    """One that runs; it has the three streams that it is given."""

    def __init__(
        self,
        words: Sequence[str],
        streams: Sequence[int],
        cwd: Path,
        env: Mapping[str, str],
        at_terminal: bool = False,
    ) -> None:
        told, told_end = os.pipe()
        request = json.dumps(
            {"words": words, "cwd": str(cwd), "env": dict(env), "at_terminal": at_terminal}
        ).encode()
        socket.send_fds(_parent().requests, [request], [*streams, told_end])
        os.close(told_end)
        self._told = os.fdopen(told)
        #: Another thread may be waiting for the end, and closes `_told` when it comes.
        self._lock = threading.Lock()
        self.pid = int(self._told.readline())

    def send_signal(self, number: signal.Signals) -> None:
        with self._lock:
            if not self._told.closed and not self._ends_within(0):
                os.kill(self.pid, number)

    def wait(self, limit: float) -> int:
        """Its exit code; the negative number of the signal that has ended it."""
        has_ended = self._ends_within(limit)
        if not has_ended:
            self.send_signal(signal.SIGKILL)
        with self._lock, self._told:
            if not has_ended:
                raise TimeoutError(f"it did not end within {limit} s")
            return int(self._told.readline())

    def _ends_within(self, seconds: float) -> bool:
        return bool(select.select([self._told], [], [], seconds)[0])


def run(
    words: Sequence[str], *, cwd: Path, env: dict[str, str], stdin: str, limit: float
) -> subprocess.CompletedProcess[str]:
    """Until it has ended, with all that it said. `stdin` fits into a pipe."""
    given, to = os.pipe()
    os.write(to, stdin.encode())
    os.close(to)
    with TemporaryFile() as out, TemporaryFile() as errors:
        code = Command(words, (given, out.fileno(), errors.fileno()), cwd, env).wait(limit)
        os.close(given)
        texts = [(file.seek(0), file.read().decode())[1] for file in (out, errors)]
    return subprocess.CompletedProcess(words, code, *texts)


class Process:
    """One that runs, as asyncio shows a process that it has started itself."""

    def __init__(self, command: Command) -> None:
        self._command = command
        self.pid = command.pid
        self._ended = asyncio.ensure_future(asyncio.to_thread(command.wait, LIMIT))

    @property
    def returncode(self) -> int | None:
        return self._ended.result() if self._ended.done() else None

    def send_signal(self, number: signal.Signals) -> None:
        if self.returncode is None:
            self._command.send_signal(number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    async def wait(self) -> int:
        return await asyncio.shield(self._ended)


class Piped(Process):
    """The same with pipes for its streams."""

    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader
    _from_stdout: asyncio.ReadTransport

    @classmethod
    async def start(
        cls, words: Sequence[str], cwd: Path, env: Mapping[str, str], limit: int
    ) -> Piped:
        (given, to), (out, out_end), (errors, errors_end) = os.pipe(), os.pipe(), os.pipe()
        process = cls(Command(words, (given, out_end, errors_end), cwd, env))
        for fd in (given, out_end, errors_end):
            os.close(fd)
        process.stdin = await _writer(to)
        process.stdout, process._from_stdout = await _reader(out, limit)
        process.stderr, _ = await _reader(errors, limit)
        return process

    def stop_reading(self) -> None:
        """As one who reads what it prints and goes away."""
        self._from_stdout.close()

    async def close(self) -> None:
        """It is ended if it has not."""
        self.kill()
        await self.wait()
        self.stdin.close()
        for stream in (self.stdout, self.stderr):
            await stream.read()


async def _writer(fd: int) -> asyncio.StreamWriter:
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, os.fdopen(fd, "wb")
    )
    return asyncio.StreamWriter(transport, protocol, None, loop)


async def _reader(fd: int, limit: int) -> tuple[asyncio.StreamReader, asyncio.ReadTransport]:
    reader = asyncio.StreamReader(limit)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(fd, "rb")
    )
    return reader, transport


class _Parent:
    """The one that is forked."""

    def __init__(self) -> None:
        self.requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, str(Path(__file__)), str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )

    def close(self) -> None:
        """It ends when nobody can speak to it any more."""
        self.requests.close()
        self._process.wait()


@functools.cache
def _parent() -> _Parent:
    return _Parent()


def close() -> None:
    """After the last command."""
    if _parent.cache_info().currsize:
        _parent().close()


# --- the process that is forked


def _serve(requests: socket.socket) -> list[str] | None:
    """Fork for each request; the words of the command, in the fork that is to be it."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # those who wait for a command are not waited for
    while True:
        data, fds, _, _ = socket.recv_fds(requests, MOST, 4)
        if not data:
            return None
        if os.fork() == 0:
            requests.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            return _become(json.loads(data), fds)
        for fd in fds:
            os.close(fd)


def _become(request: dict[str, Any], fds: list[int]) -> list[str]:
    *streams, told = fds
    pid = os.fork()
    if pid:
        for fd in streams:
            os.close(fd)
        os.write(told, b"%d\n" % pid)
        _, status = os.waitpid(pid, 0)
        os.write(told, b"%d\n" % os.waitstatus_to_exitcode(status))
        os._exit(0)
    if request["at_terminal"]:
        os.login_tty(os.dup(streams[0]))
    for number, fd in enumerate(streams):
        os.dup2(fd, number)
    for fd in fds:
        os.close(fd)
    # Those of the process that was forked do not know whether they are a terminal's.
    sys.stdin, sys.stdout = open(0), open(1, "w")  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1)  # noqa: SIM115
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    words: list[str] = request["words"]
    return words


def _import_all() -> None:
    """All that a command may need, and the routes of the server."""
    for package in ("bridle.cli", "bridle.server", "bridle.loopback", "bridle.supervisor"):
        for module in pkgutil.walk_packages(
            importlib.import_module(package).__path__, f"{package}."
        ):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)


def _main(fd: int) -> None:
    _import_all()
    from bridle.cli.main import run

    assert threading.active_count() == 1, "a process with threads can't be forked"
    gc.freeze()
    with socket.socket(fileno=fd) as requests:
        words = _serve(requests)
    if words is not None:
        code = run(words)
        sys.stdout.flush()
        # An interpreter that ends in good order takes twenty times as long as the command.
        os._exit(code)


if __name__ == "__main__":
    _main(int(sys.argv[1]))
