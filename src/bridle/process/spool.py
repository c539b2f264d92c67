"""The folder of one launch: what a controller and a shim have in common.

    lock        held by the shim while it lives
    abandoned   no shim will ever start a CLI here
    shim, cli   which processes they are
    inbox       what the CLI is to read, appended by the controller
    doorbell    the FIFO that tells the shim that there is more
    stdout, stderr   what the CLI writes, by itself
    exit        how it ended

Owns the files; waits for nothing and does not know what is in them. Holds none of them open: a
controller of hundreds of agents would run out of descriptors.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import functools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct

from .census import Seen, see
from .shim import END
from .transport import Exit

Growing: TypeAlias = Literal["inbox", "stdout", "stderr"]

_FILES: tuple[str, ...] = ("lock", "inbox", "stdout", "stderr")
#: fallocate(2): free the blocks of a part of a file, and leave its size as it is.
_PUNCH_HOLE = 0x02 | 0x01
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class ProcessId(Struct, frozen=True):
    """One process among all that ever were: a number, its birth in ticks, and the boot.

    Where the system tells no ticks `born` is 0, and `boot` is empty.
    """

    pid: int
    born: int = 0
    boot: str = ""

    def seen(self) -> Seen | None:
        """The process, if it is alive."""
        if self.boot != current_boot():
            return None
        found = see(self.pid)
        return found if found and (found.born == self.born or not self.born) else None


class Spool:
    """One launch's folder. It may be gone, or not made yet: `make` does that."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self._start = f"{self.folder}/"

    def make(self) -> None:
        """Everything that a shim needs; what is there already stays as it is."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in _FILES:
            os.close(os.open(self.path(name), os.O_CREAT | os.O_RDWR, 0o600))
        with contextlib.suppress(FileExistsError):
            os.mkfifo(self.path("doorbell"), 0o600)

    def path(self, name: str) -> str:
        return self._start + name

    def is_made(self) -> bool:
        return os.path.exists(self.path("doorbell"))  # noqa: PTH110 - asked for every launch

    def remove(self) -> None:
        """The folder and all that is in it, whatever that is; nothing where it is gone. A link is
        not followed."""
        import shutil  # here, because it brings half of the standard library with it

        if self.folder.is_symlink() or not self.folder.is_dir():
            self.folder.unlink(missing_ok=True)
        else:
            # All at once: a shim that comes late must not find a part of it.
            gone = self.folder.with_name(f"gone-{self.folder.name}")
            with contextlib.suppress(OSError):
                self.folder.rename(gone)
            for folder in (gone, self.folder):
                shutil.rmtree(folder, ignore_errors=True)

    # --- the shim

    def shim(self) -> ProcessId | None:
        """Which process the shim is; None before it has said so."""
        match self._words("shim"):
            case [pid, born, *boot] if pid.isdigit() and born.isdigit():
                return ProcessId(int(pid), int(born), "".join(boot))
        return None

    def cli(self) -> ProcessId | None:
        """Which process the CLI is, as its shim knows."""
        shim = self.shim()
        match self._words("cli"):
            case [pid, born] if shim and pid.isdigit() and born.isdigit():
                return ProcessId(int(pid), int(born), shim.boot)
        return None

    def exit(self) -> Exit | None:
        """How the CLI ended; None while it runs, or where the shim could not tell."""
        match self._words("exit"):
            case ["-", number] if number.isdigit():
                return Exit(signal=int(number))
            case [code, "-"] if code.isdigit():
                return Exit(code=int(code))
        return None

    def is_held(self) -> bool:
        """Whether a shim lives."""
        try:
            # Shared, so that two who look are not taken for a shim by each other.
            with self._locked(os.O_RDWR, fcntl.LOCK_SH):
                return False
        except BlockingIOError:
            return True
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return False  # without a lock there is no shim

    def abandon(self) -> bool:
        """See to it that no shim starts a CLI here from now on; False if one lives already."""
        try:
            with self._locked(os.O_RDWR | os.O_CREAT, fcntl.LOCK_EX):
                os.close(os.open(self.path("abandoned"), os.O_CREAT | os.O_WRONLY, 0o600))
        except BlockingIOError:
            return False
        except FileNotFoundError:
            pass  # without the folder a shim can't do anything
        return True

    def is_abandoned(self) -> bool:
        return os.path.exists(self.path("abandoned"))  # noqa: PTH110

    # --- what the CLI is to read

    def append(self, data: bytes) -> None:
        """Add to the inbox. Where it fails, `inbox_size` tells how much of it is there."""
        with self._open("inbox", os.O_WRONLY | os.O_APPEND) as fd:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(fd, rest) :]

    def ring(self, *, end: bool = False) -> bool:
        """Tell the shim that there is more, or that there will be no more.

        False where nobody hears it: the shim is gone, or its CLI is.
        """
        try:
            with self._open("doorbell", os.O_WRONLY | os.O_NONBLOCK) as fd:
                os.write(fd, END if end else b"\n")
        except BlockingIOError:
            # It was rung thousands of times and not heard yet. One more would change nothing.
            return not end
        except OSError as error:
            if error.errno in (errno.ENXIO, errno.ENOENT, errno.EPIPE):
                return False
            raise
        return True

    def inbox_size(self) -> int:
        return self.size("inbox")

    def read_inbox(self, start: int, size: int) -> bytes:
        return self.read("inbox", start, size)

    # --- files that grow

    def size(self, name: Growing) -> int:
        """0 where it is gone."""
        with contextlib.suppress(FileNotFoundError):
            return os.stat(self.path(name)).st_size  # noqa: PTH116
        return 0

    def read(self, name: Growing, start: int, size: int) -> bytes:
        """What is there of this part; nothing where the file is gone."""
        try:
            with self._open(name, os.O_RDONLY) as fd:
                return os.pread(fd, size, start)
        except FileNotFoundError:
            return b""

    def punch(self, name: Growing, upto: int) -> int:
        """Give the disk back what nobody will read again; how many bytes that were.

        The file keeps its size and all offsets. Nothing where the file system can't.
        """
        punch = _fallocate()
        whole = upto - upto % os.sysconf("SC_PAGE_SIZE")
        if punch is None or whole <= 0:
            return 0
        try:
            with self._open(name, os.O_RDWR) as fd:
                before = os.fstat(fd).st_blocks
                if punch(fd, _PUNCH_HOLE, 0, whole):
                    return 0
                return max(0, before - os.fstat(fd).st_blocks) * 512
        except FileNotFoundError:
            return 0

    def _words(self, name: str) -> list[str]:
        """The words of a small file that is written at once; none where there is none."""
        try:
            with self._open(name, os.O_RDONLY) as fd:
                return os.read(fd, 4096).decode("ascii", "replace").split()
        except FileNotFoundError:
            return []

    def _open(self, name: str, flags: int) -> _Opened:
        return _Opened(self._start + name, flags)

    @contextlib.contextmanager
    def _locked(self, flags: int, kind: int) -> Iterator[None]:
        with self._open("lock", flags) as fd:
            fcntl.flock(fd, kind | fcntl.LOCK_NB)
            yield


class _Opened:
    """A descriptor for the time of a block; a generator for it would take longer than the open."""

    __slots__ = ("_fd",)

    def __init__(self, path: str, flags: int) -> None:
        self._fd = os.open(path, flags, 0o600)

    def __enter__(self) -> int:
        return self._fd

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)


@functools.cache
def current_boot() -> str:
    """What names this run of the kernel; empty where the system has no name for it."""
    with contextlib.suppress(OSError):
        return _BOOT.read_text().strip()
    return ""


@functools.cache
def _fallocate() -> ctypes._NamedFuncPointer | None:
    try:
        function = ctypes.CDLL(None, use_errno=True).fallocate
    except (AttributeError, OSError):
        return None
    function.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    return function
