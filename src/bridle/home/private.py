"""That a folder is for its owner alone: nobody else has made it, or can change what is in it.

Owns the refusal, which comes before anything is read or written there: a link that another user has
left in it would lead our writing elsewhere.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ..errors import HomeNotPrivate

#: Whose a folder of root is where we are in a user namespace.
OVERFLOW = 65534


def private_folder(folder: Path) -> Path:
    """This one, if it is there: what others may read in it, they may no more. HomeNotPrivate."""
    try:
        link, found = folder.lstat(), folder.stat()
    except OSError:  # if it is not that, who opens it says why it can't be
        return folder
    us = os.geteuid()
    if found.st_uid != us:
        who = f"it belongs to another user ({found.st_uid}), and we are {us}"
        raise HomeNotPrivate(str(folder), f"{who}; give another home, or change its owner")
    if stat.S_ISLNK(link.st_mode) and link.st_uid not in (us, 0):
        who = f"it is a link of another user ({link.st_uid})"
        raise HomeNotPrivate(str(folder), f"{who}; give the folder itself")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        words = "others can write to it; see that all in it is yours, then `chmod 700` it"
        raise HomeNotPrivate(str(folder), words)
    _check_above(folder)
    if stat.S_ISDIR(found.st_mode) and found.st_mode & 0o077:
        try:
            folder.chmod(0o700)
        except OSError as error:
            words = f"others can read it, and that can't be changed: {error.strerror}"
            raise HomeNotPrivate(str(folder), words) from error
    return folder


def _check_above(folder: Path) -> None:
    """Whoever can rename it can put another in its place."""
    trusted = {os.geteuid(), 0, *((OVERFLOW,) if _is_in_namespace() else ())}
    for above in {*folder.absolute().parents, *folder.resolve().parents}:
        try:
            found = above.stat()
        except OSError:
            continue
        if found.st_uid not in trusted:
            words = f"{above}, in which it lies, belongs to another user ({found.st_uid})"
            raise HomeNotPrivate(str(folder), f"{words}; give another home")
        if found.st_mode & stat.S_IWOTH and not found.st_mode & stat.S_ISVTX:
            words = f"everybody can write to {above}, in which it lies"
            raise HomeNotPrivate(str(folder), f"{words}; `chmod o-w` it, or give another home")


def _is_in_namespace() -> bool:
    """Whether some users of the machine have no number here."""
    try:
        return Path("/proc/self/uid_map").read_text().split() != ["0", "0", "4294967295"]
    except OSError:
        return False


def made_private(folder: Path) -> Path:
    """The same, made if it is not there."""
    _check_above(folder)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return private_folder(folder)
