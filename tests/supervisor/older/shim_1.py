"""The small program between a controller and a CLI that is to outlive it.

    python -I -S shim.py FOLDER -- COMMAND…

Owns one CLI: starts it with its output in files of the spool FOLDER, feeds it from the file
`inbox` when the FIFO `doorbell` is rung, keeps its exit status in `exit`, and stays for as long as
anything is left that the CLI has started. Knows nothing of the protocol and needs no controller.
`spool.py` is the other side of the folder.

A shim is there for every agent, so it never wakes without a reason, and imports what is small.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import NoReturn
else:  # the module around it would bring `enum` along: a fifth of all the memory
    import _signal as signal

PIECE = 1 << 16
#: On the doorbell: close the CLI's stdin after what is in the inbox now. Any other byte: read on.
END = b"e"
#: How long to wait before the exit status is written again, where that has failed.
RETRY_MS = 1000
#: The status of a CLI that could not be started, as shells have it.
NOT_STARTED = 127
#: Room for an exit status, taken while there is some.
RESERVED = b" " * 15 + b"\n"

_DEAF_TO = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


class Shim:
    """One CLI and its spool."""

    def __init__(self, folder: str, command: list[str]) -> None:
        self.folder = folder
        self.command = command
        self.poll = select.poll()
        self.inbox = os.open(f"{folder}/inbox", os.O_RDONLY)
        # Read-write, so that it is never at its end when nobody else has it open.
        self.doorbell = os.open(f"{folder}/doorbell", os.O_RDWR | os.O_NONBLOCK)
        self.stdin = -1
        self.cli = 0
        self.fed = 0
        #: Where the CLI's input ends, once that was said.
        self.end: int | None = None
        #: What is not yet written of how the CLI ended.
        self.status = ""

    def run(self) -> None:
        woken = _woken_by_children()
        self.poll.register(woken, select.POLLIN)
        self.poll.register(self.doorbell, select.POLLIN)
        _write(f"{self.folder}/exit.new", RESERVED)
        try:
            self.start()
        except OSError as error:
            _complain(self.command, error)
            self.ended(f"{NOT_STARTED} -")
        os.chdir("/")  # a folder that the agent has done with may be taken away
        self.feed()
        while self.reap() or self.status:
            for fd, _ in self.poll.poll(RETRY_MS if self.status else None):
                if fd == woken:
                    os.read(woken, PIECE)
                elif fd == self.doorbell:
                    self.rung()
                else:
                    self.feed()
            if self.status:
                self.keep_status()

    # --- the CLI

    def start(self) -> None:
        output = _open_output(f"{self.folder}/stdout")
        errors = _open_output(f"{self.folder}/stderr")
        read, self.stdin = os.pipe()
        os.set_blocking(self.stdin, False)
        us = os.getpid()
        self.cli = os.fork()
        if self.cli == 0:
            _become(self.command, us, (read, output, errors))
        for fd in (read, output, errors):
            os.close(fd)
        try:  # noqa: SIM105
            _replace(f"{self.folder}/cli", f"{self.cli} {_born(self.cli)}\n".encode())
        except OSError:
            pass  # it is wanted only where we are killed; the CLI runs, and that is told

    def reap(self) -> bool:
        """Bury whoever has ended; whether anybody is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.cli:
                code = os.waitstatus_to_exitcode(status)
                self.ended(f"{code} -" if code >= 0 else f"- {-code}")

    def ended(self, status: str) -> None:
        self.close_stdin()
        self.poll.unregister(self.doorbell)
        # From now on nobody hears it, which is what whoever rings it has to know.
        os.close(self.doorbell)
        os.close(self.inbox)
        self.doorbell = self.inbox = -1
        self.status = status
        self.keep_status()

    def keep_status(self) -> None:
        try:
            _replace(f"{self.folder}/exit", f"{self.status}\n".encode())
        except FileNotFoundError:
            pass  # the folder was taken away: nobody wants to know
        except OSError:
            return
        self.status = ""

    # --- its input

    def rung(self) -> None:
        if END in os.read(self.doorbell, PIECE) and self.end is None:
            self.end = os.fstat(self.inbox).st_size
        self.feed()

    def feed(self) -> None:
        """Pass on a piece of what is in the inbox; come back when the CLI has room for more."""
        if self.stdin < 0:
            return
        wanted = PIECE if self.end is None else min(PIECE, self.end - self.fed)
        piece = os.pread(self.inbox, wanted, self.fed)
        try:
            written = os.write(self.stdin, piece) if piece else 0
        except BlockingIOError:
            written = 0
        except OSError:  # the CLI has closed it
            self.close_stdin()
            return
        self.fed += written
        if written < len(piece) or len(piece) == PIECE:
            self.poll.register(self.stdin, select.POLLOUT)
        elif self.fed == self.end:
            self.close_stdin()
        else:
            self.stop_waiting()

    def close_stdin(self) -> None:
        if self.stdin >= 0:
            self.stop_waiting()
            os.close(self.stdin)
            self.stdin = -1

    def stop_waiting(self) -> None:
        """An input that nobody reads would wake us all the time."""
        try:  # noqa: SIM105 - contextlib is not small
            self.poll.unregister(self.stdin)
        except KeyError:
            pass


def _woken_by_children() -> int:
    """What is readable when a child has ended: also one that we have only inherited."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return read


def _become(command: list[str], parent: int, fds: tuple[int, int, int]) -> NoReturn:
    """In the child: be the CLI."""
    try:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # it was killed before it could be said
            os._exit(128 + signal.SIGTERM)
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_DFL)
        for target, fd in enumerate(fds):
            os.dup2(fd, target)
        os.execv(command[0], command)
    except OSError as error:
        _complain(command, error)
    finally:
        os._exit(NOT_STARTED)


def _complain(command: list[str], error: OSError) -> None:
    os.write(2, os.fsencode(f"can't start {command[0]}: {error.strerror}\n"))


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _born(pid: int) -> int:
    """When it was started, in ticks since the boot: with its number, which process it is."""
    stat = _read(f"/proc/{pid}/stat")
    return int(stat.rpartition(b")")[2].split()[19]) if stat else 0


def _read(path: str) -> bytes:
    """Nothing where there is no such file."""
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError:
        return b""
    data = os.read(fd, PIECE)
    os.close(fd)
    return data


def _open_output(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


def _replace(path: str, data: bytes) -> None:
    """Write a file that is there whole, or not at all."""
    _write(f"{path}.new", data)
    os.rename(f"{path}.new", path)  # noqa: PTH104


def _write(path: str, data: bytes) -> None:
    # Not emptied first: on a full disk the place that it has is all that there is.
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        if os.write(fd, data) < len(data):
            raise OSError("the disk is full")
        os.ftruncate(fd, len(data))
    finally:
        os.close(fd)


def main(folder: str, command: list[str]) -> None:
    for number in _DEAF_TO:
        signal.signal(number, signal.SIG_IGN)
    # Whoever started us may hold signals back, and we would never hear of a child.
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    # Held for as long as we live, and by nobody else: no number can be mistaken for it.
    fcntl.flock(os.open(f"{folder}/lock", os.O_RDWR), fcntl.LOCK_EX)
    if os.path.exists(f"{folder}/abandoned"):  # noqa: PTH110
        return
    shim = Shim(folder, command)
    boot = _read("/proc/sys/kernel/random/boot_id").decode().strip()
    _replace(f"{folder}/shim", f"{os.getpid()} {_born(os.getpid())} {boot}\n".encode())
    shim.run()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[3:])
