"""The tokens of agents outside, each in a file of its own: `mcp/NAME.token` in the home.

Owns the files, which are for their owner alone. Whether a token still opens anything is known to
the server.
"""

from __future__ import annotations

import re
from pathlib import Path

from ..home.files import read_private, write_private
from .errors import Misused, NotFound

FOLDER, SUFFIX = "mcp", ".token"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def file_of(home: Path, name: str) -> Path:
    """Where the token of this name is, or would be. Names go into files, commands and JSON."""
    if not _NAME.fullmatch(name):
        words = f"{name!r} can't be the name of a token"
        raise Misused(words, "use up to 64 letters, digits, dots, dashes and underscores")
    return home / FOLDER / f"{name}{SUFFIX}"


def keep(home: Path, name: str, text: str) -> Path:
    path = file_of(home, name)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(path, f"{text}\n")
    return path


def text_in(path: Path, remedy: str) -> str:
    """What is in a file of a token. NotFound, with what to do, if it is not there or others can
    read it."""
    text = (read_private(path) or "").strip()
    if not text:
        is_open = path.exists()
        words = f"{path} is not for its owner alone" if is_open else f"there is no token in {path}"
        raise NotFound(words, f"chmod 600 {path}" if is_open else remedy)
    return text


def forget(home: Path, name: str) -> None:
    file_of(home, name).unlink(missing_ok=True)


def names_in(home: Path) -> set[str]:
    """Of all that are kept."""
    return {one.name.removesuffix(SUFFIX) for one in (home / FOLDER).glob(f"*{SUFFIX}")}
