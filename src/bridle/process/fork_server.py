"""Starts CLIs for a controller, and kills them if it dies.

    python -I -S fork_server.py FD

One for each controller process, which it talks to over the socket FD. For each CLI it forks a
guardian. The guardian starts the CLI, holds its stdin open, reports how it ends, and adopts the
orphans that its tools leave. When the controller is gone, the guardian kills all of them. Holding
stdin matters: a CLI that loses it while it waits for a decision may run the tool.

Owns no policy and reads no output: `fork_client` is the other side. It imports only what is small,
because it is there for as long as any CLI.
"""

from __future__ import annotations

import _socket
import ctypes
import marshal
import os
import select
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import NoReturn
else:  # the module around it would bring `enum` along: a fifth of all the memory
    import _signal as signal

#: A request: its length and these descriptors, then marshalled `(argv, env, cwd, mark)`.
HEAD_BYTES = 8
FDS = 5  # the CLI's stdin, our end of it, its stdout, its stderr, the guardian's socket
FD_BYTES = 4
#: From the controller to a guardian: close the CLI's stdin.
END = b"e"
#: The variable whose place in memory the guardian's mark takes.
PLACEHOLDER = "BRIDLE_GUARDIAN"
PLACE_BYTES = 1024
PIECE = 1 << 16
EINVAL = 22  # the module `errno` would have it

_DEAF_TO = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def serve(control: _socket.socket) -> None:
    """Until the controller has gone."""
    while head := _received(control):
        size, fds = head
        request = marshal.loads(_exactly(control, size))
        if os.fork() == 0:
            control.close()
            os._exit(_guard(*request, *fds))
        for fd in fds:
            os.close(fd)


def _received(control: _socket.socket) -> tuple[int, list[int]] | None:
    data, ancillary, _, _ = control.recvmsg(HEAD_BYTES, _socket.CMSG_SPACE(FDS * FD_BYTES))
    if not data:
        return None
    [(_, _, packed)] = ancillary
    fds = [
        int.from_bytes(packed[at : at + FD_BYTES], sys.byteorder)
        for at in range(0, FDS * FD_BYTES, FD_BYTES)
    ]
    for fd in fds:
        os.set_inheritable(fd, False)
    return int.from_bytes(data, "big"), fds


def _exactly(control: _socket.socket, size: int) -> bytes:
    parts: list[bytes] = []
    while size:
        part = control.recv(min(size, PIECE))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


# --- the guardian


def _guard(
    argv: list[str],
    env: dict[str, str],
    cwd: str,
    mark: str,
    read: int,
    write: int,
    output: int,
    errors: int,
    life: int,
) -> int:
    os.setsid()
    _take_mark(mark)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    woken = _woken_by_children()
    us = os.getpid()
    cli, error = _start(argv, env, cwd, us, (read, output, errors))
    for fd in (read, output, errors):
        os.close(fd)
    if error:
        os.write(life, b"failed %d\n" % error)
        return 1
    os.write(life, b"started %d %d\n" % (cli, us))
    return Guardian(cli, write, life, woken).run()


class Guardian:
    """One CLI, and whatever it leaves behind."""

    def __init__(self, cli: int, stdin: int, life: int, woken: int) -> None:
        self.cli = cli
        self.stdin = stdin
        self.life = life
        self.woken = woken

    def run(self) -> int:
        poll = select.poll()
        poll.register(self.woken, select.POLLIN)
        poll.register(self.life, select.POLLIN)
        while self.reap():
            for fd, _ in poll.poll():
                if fd == self.woken:
                    os.read(self.woken, PIECE)
                elif not self.told():
                    self.kill_all()
                    return 0
        return 0

    def told(self) -> bool:
        """Whether the controller still lives."""
        try:
            said = os.read(self.life, PIECE)
        except OSError:
            return False
        if said:
            self.close_stdin()
        return bool(said)

    def close_stdin(self) -> None:
        if self.stdin >= 0:
            os.close(self.stdin)
            self.stdin = -1

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
                self.ended(os.waitstatus_to_exitcode(status))

    def ended(self, code: int) -> None:
        self.close_stdin()
        said = f"ended {code} -\n" if code >= 0 else f"ended - {-code}\n"
        try:  # noqa: SIM105 - contextlib is not small
            os.write(self.life, said.encode())
        except OSError:
            pass  # the controller has gone, which is seen next

    def kill_all(self) -> None:
        """The CLI first. What loses its parent by that becomes ours, and is next."""
        _kill(self.cli)
        while True:
            for pid in _children():
                _kill(pid)
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                return


def _start(
    argv: list[str], env: dict[str, str], cwd: str, us: int, fds: tuple[int, int, int]
) -> tuple[int, int]:
    """The CLI's pid, and why it could not be started (an errno), once that is known."""
    told, tells = os.pipe()
    pid = os.fork()
    if pid == 0:
        _become(argv, env, cwd, us, fds, tells)
    os.close(tells)
    error = os.read(told, PIECE)
    os.close(told)
    return pid, int(error or 0)


def _become(
    argv: list[str], env: dict[str, str], cwd: str, us: int, fds: tuple[int, int, int], tells: int
) -> NoReturn:
    """In the child: be the CLI."""
    try:
        # A guardian that is killed itself could not kill us any more.
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != us:
            os._exit(128 + signal.SIGKILL)
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_DFL)
        for target, fd in enumerate(fds):
            os.dup2(fd, target)
        os.setsid()
        os.chdir(cwd)
        os.execve(argv[0], argv, env)
    except (OSError, ValueError) as error:
        os.write(tells, str(getattr(error, "errno", EINVAL)).encode())
    finally:
        os._exit(127)


def _children() -> list[int]:
    us = str(os.getpid()).encode()
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and _parent(name) == us]  # noqa: PTH208


def _parent(pid: str) -> bytes:
    fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return fields[1] if fields else b""


def _kill(pid: int) -> None:
    try:  # noqa: SIM105
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass  # it has gone


def _take_mark(mark: str) -> None:
    """Carry the launch's mark as a process that was started with it would: whoever loses its parent
    and has cleared its environment is known by its new parent, which is us."""
    entry = f"{PLACEHOLDER}=".encode()
    at = _read("/proc/self/environ").find(entry)
    stat = _read("/proc/self/stat").rpartition(b")")[2].split()
    if at >= 0 and stat:
        there = int(stat[47]) + at  # where the environment begins in our memory
        size = len(entry) + PLACE_BYTES
        ctypes.memmove(there, mark.encode().ljust(size, b"\0"), size)


def _woken_by_children() -> int:
    """What is readable when a child has ended: also one that we have only inherited."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return read


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _read(path: str) -> bytes:
    """Nothing where there is no such file."""
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError:
        return b""
    data = os.read(fd, PIECE)
    os.close(fd)
    return data


def main(fd: int) -> None:
    for number in _DEAF_TO:
        signal.signal(number, signal.SIG_IGN)
    # Guardians are reaped by nobody else.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # Whoever started us may hold signals back, and a guardian would never hear of a child.
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    try:  # noqa: SIM105
        serve(_socket.socket(fileno=fd))
    except (OSError, EOFError):
        pass  # the controller has gone


if __name__ == "__main__":
    main(int(sys.argv[1]))
