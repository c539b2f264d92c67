"""The folder of a journal: made for us alone, on a disk of this machine, held by one process."""

from __future__ import annotations

import fcntl
import os
import re
import sys
from contextlib import suppress
from pathlib import Path

from ...errors import JournalInUse, JournalUnusable
from ..files import sync_folder
from .failures import not_a_place

FILE = "journal.db"
LOCK = "journal.lock"
BALLAST = "journal.ballast"
BLOBS = "blobs"

#: Where locks and shared memory do not mean what they mean on a disk.
NETWORK_FILE_SYSTEMS = {
    "9p", "afs", "beegfs", "ceph", "cifs", "davfs", "fuse.ceph", "fuse.gcsfuse", "fuse.glusterfs",
    "fuse.juicefs", "fuse.mount-s3", "fuse.rclone", "fuse.s3fs", "fuse.sshfs", "gfs2", "glusterfs",
    "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "smb3", "smbfs", "vboxsf", "webdav",
}  # fmt: skip


class Place:
    """A journal's folder, locked as long as this object is not released."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / FILE
        self.ballast = folder / BALLAST
        self.blobs = folder / BLOBS
        try:
            for made in (folder, self.blobs):
                made.mkdir(mode=0o700, parents=True, exist_ok=True)
            _refuse_network(folder)
            self._lock = _locked(folder / LOCK, self.file)
        except OSError as error:
            raise not_a_place(error, folder) from error
        try:
            # SQLite gives its side files the rights of the main one.
            os.close(os.open(self.file, os.O_RDWR | os.O_CREAT, 0o600))
            for holding in (folder, folder.parent):
                sync_folder(holding)
            for half in self.blobs.glob("*.part"):
                half.unlink()
        except OSError as error:
            self.release()
            raise not_a_place(error, folder) from error

    def release(self) -> None:
        os.close(self._lock)


def _locked(lock: Path, file: Path) -> int:
    """Not a lock on the database itself: to close another descriptor of it would undo SQLite's."""
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = os.read(descriptor, 32).decode(errors="replace").strip()
        os.close(descriptor)
        if not isinstance(error, BlockingIOError):
            raise
        raise JournalInUse(str(file), int(holder) if holder.isdigit() else None) from None
    with suppress(OSError):  # on a full disk others will not learn who has it
        os.ftruncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode())
    return descriptor


def _refuse_network(folder: Path) -> None:
    kind = file_system_of(folder)
    if kind in NETWORK_FILE_SYSTEMS:
        raise JournalUnusable(
            f"{folder} is on a network file system ({kind}), where a journal would be damaged:"
            " choose a home on a disk of this machine"
        )


def file_system_of(folder: Path) -> str:
    """The type of file system that holds the folder; empty if that can't be known."""
    where = folder.resolve()
    mounts = dict(_mounts())
    for candidate in (where, *where.parents):
        if str(candidate) in mounts:
            return mounts[str(candidate)]
    return ""


def _mounts() -> list[tuple[str, str]]:
    """Mount points with their types; of two on one point the later one counts."""
    if sys.platform != "linux":
        import psutil

        return [(part.mountpoint, part.fstype) for part in psutil.disk_partitions(all=True)]
    found = []
    for line in Path("/proc/self/mountinfo").read_bytes().split(b"\n")[:-1]:
        before, _, after = line.partition(b" - ")
        point = re.sub(rb"\\([0-7]{3})", _unescaped, before.split(b" ")[4])
        found.append((os.fsdecode(point), os.fsdecode(after.split(b" ")[0])))
    return found


def _unescaped(octal: re.Match[bytes]) -> bytes:
    """A space in a name is \\040 there."""
    return bytes([int(octal[1], 8)])
