"""Where the server of a home is: the file `server.json` there.

Owns the file. It is a hint: one that was killed leaves it behind, so whoever reads it must see
whether somebody answers.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from .files import read_private, write_private

FILE = "server.json"


class Address(Struct, frozen=True, kw_only=True):
    """`socket` is the path of the unix socket, which is not in the home where that has too long a
    path; `started` is in unix seconds."""

    pid: int
    url: str
    socket: str
    version: str
    started: float


def write_address(home: Path, address: Address) -> None:
    write_private(home / FILE, msgspec.json.encode(address).decode())


def read_address(home: Path) -> Address | None:
    """What the last server has left there; None if that is nothing that can be read."""
    text = read_private(home / FILE)
    with suppress(msgspec.MsgspecError):
        return msgspec.json.decode(text, type=Address) if text else None
    return None


def addresses_in(home: Path) -> tuple[str, ...]:
    """By what the home's server may be reached, as far as it is up: `HOST:PORT`, and a path."""
    told = read_address(home)
    return (told.url.partition("://")[2].rstrip("/"), told.socket) if told else ()


def remove_address(home: Path) -> None:
    with suppress(OSError):
        (home / FILE).unlink()
