"""Real file systems of a few megabytes, to be filled, write-protected and filled again."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

#: Room for the ballast (8 MB), for as much again, which it needs to come back, and for some events.
SIZE_MB = 32


class Disk:
    """A mounted file system of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filler = folder / "filler"

    def fill(self, leave: int = 0) -> None:
        """Take all space but so much."""
        with self._filler.open("ab", buffering=0) as file, contextlib.suppress(OSError):
            for size in (1 << 20, 1 << 12, 1):
                with contextlib.suppress(OSError):
                    while True:
                        file.write(bytes(size))
        if leave:
            os.truncate(self._filler, self._filler.stat().st_size - leave)
            assert self.free_bytes() >= leave - (1 << 16)
        else:
            assert self.free_bytes() == 0

    def free(self) -> None:
        self._filler.unlink()

    def free_bytes(self) -> int:
        found = os.statvfs(self.folder)
        return found.f_bavail * found.f_frsize

    def protect(self) -> None:
        """Nothing on it can be written from now on."""
        _run("mount", "-o", "remount,ro", str(self.folder))


@contextlib.contextmanager
def tmpfs(folder: Path) -> Iterator[Disk]:
    folder.mkdir()
    with _mounted(folder, "-t", "tmpfs", "-o", f"size={SIZE_MB}m", "tmpfs"):
        yield Disk(folder)


@contextlib.contextmanager
def ext4(folder: Path) -> Iterator[Disk]:
    folder.mkdir()
    image = folder.with_name(f"{folder.name}.img")
    with image.open("wb") as file:
        file.truncate((SIZE_MB + 16) << 20)
    try:
        _run("mkfs.ext4", "-q", "-m", "0", str(image))
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no ext4 can be made here: {error}")
    with _mounted(folder, "-o", "loop", str(image)):
        yield Disk(folder)


#: A machine without loop devices (a container, say) can't have an ext4 of its own.
HAS_LOOPS = Path("/dev/loop-control").exists() and shutil.which("mkfs.ext4") is not None
KINDS = {"tmpfs": tmpfs, **({"ext4": ext4} if HAS_LOOPS else {})}


@contextlib.contextmanager
def _mounted(folder: Path, *options: str) -> Iterator[None]:
    try:
        _run("mount", *options, str(folder))
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"nothing can be mounted here (root may): {error}")
    try:
        yield
    finally:
        try:
            _run("umount", str(folder))
        except subprocess.CalledProcessError:
            # A test that failed has left files open: gone with them.
            _run("umount", "--lazy", str(folder))
            raise


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=30)
