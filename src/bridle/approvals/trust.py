"""Which folders people have said that they trust, and with what in them.

Owns the record of that; what a folder brings, and its digest, is found elsewhere.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from ..journal import Durability, Journal
from .model import Person
from .standing import only_a_person

TRUST = "trust"


class Trust(Struct, frozen=True, kw_only=True):
    """Somebody was shown what the folder brings, and trusts it; or (`is_withdrawn`) no longer."""

    folder: str
    digest: str
    shown: tuple[str, ...]
    by: Person
    at: float
    is_withdrawn: bool = False


class TrustedFolders:
    """By the folder's real path: a link to it is the same folder."""

    def __init__(self, journal: Journal, now: Callable[[], float] = time.time) -> None:
        self._records = journal.bucket(TRUST, Trust)
        self._now = now

    async def is_trusted(self, folder: str, digest: str) -> bool:
        """With just this in it: what has changed since is not trusted."""
        found = await self.get(folder)
        return found is not None and not found.is_withdrawn and found.digest == digest

    async def get(self, folder: str) -> Trust | None:
        found = await self._records.get(_key(_real(folder)))
        return found.value if found else None

    async def trust(self, folder: str, digest: str, shown: Sequence[str], by: Person) -> Trust:
        only_a_person(by, "whether a folder is trusted")
        path = _real(folder)
        trust = Trust(folder=_text(path), digest=digest, shown=tuple(shown), by=by, at=self._now())
        await self._records.change(_key(path), lambda _: trust, Durability.POWER)
        return trust

    async def distrust(self, folder: str, by: Person) -> Trust | None:
        """None if it never was trusted."""
        only_a_person(by, "whether a folder is trusted")
        key = _key(_real(folder))
        found = await self._records.get(key)
        if found is None:
            return None
        withdrawn = replace(found.value, by=by, at=self._now(), is_withdrawn=True)
        await self._records.change(key, lambda _: withdrawn, Durability.POWER)
        return withdrawn

    async def list(self) -> list[Trust]:
        """Those that are trusted, by path."""
        found = [document.value for document in await self._records.list()]
        return sorted((t for t in found if not t.is_withdrawn), key=lambda t: t.folder)


def _real(folder: str) -> str:
    return os.path.realpath(Path(folder).expanduser())


def _key(path: str) -> str:
    """A path may be longer than a key, and hold what no key may."""
    return sha256(os.fsencode(path)).hexdigest()


def _text(path: str) -> str:
    return os.fsencode(path).decode(errors="backslashreplace")
