"""Random spellings of paths, and the files that they may be taken for.

Owns the making of texts and of the files; the same seed makes the same. Each number has a folder of
its own, inside and outside of the working folder.
"""

from __future__ import annotations

import random
import unicodedata
from pathlib import Path
from typing import Literal

NAMES = ("a.txt", "secret", ".mcp.json", "é.txt", "ﬁ", "a b", ".bashrc", "K.txt")
_ENDS = (
    *(" ", "  ", "\t", "\n", "\r", "\v", "\f", "\u00a0", "\ufeff", "\u2028", "\u3000", "\u1680"),
    *("\u200b", "\u0085", "\u180e", "/", "/.", ".", "%20", "'", '"', "\\", "\u00ad", "\u2060"),
)
_BEFORE = (
    "./",
    ".//",
    "../work/",
    "~/",
    "$HOME/",
    "file://",
    "\\",
    "//",
    "x/../",
    "'",
    "@",
    "./ ./",
)
_INSIDE = (
    "\u00a0",
    "\u202f",
    "\u2009",
    "\u200b",
    "//",
    "/./",
    "/../",
    "\\",
    "\u2044",
    "\uff0f",
    "\u00ad",
)
_FORMS: tuple[Literal["NFC", "NFD", "NFKC"], ...] = ("NFC", "NFD", "NFKC")


def spelling(rand: random.Random, number: int, inside: Path, outside: Path) -> str:
    """A path as a model may write it: half of them are plain."""
    name = rand.choice(NAMES)
    folder = rand.choice((f"{inside}/d{number}", f"d{number}", f"{outside}/d{number}"))
    if rand.random() < 0.3:
        folder = rand.choice(
            (f"../outside/d{number}", f"{inside}/../outside/d{number}", f"link/d{number}")
        )
    text = f"{folder}/{name}"
    for _ in range(rand.choice((0, 1, 1, 2))):
        match rand.randrange(5):
            case 0:
                text += rand.choice(_ENDS)
            case 1:
                text = rand.choice(_ENDS) + text
            case 2:
                text = rand.choice(_BEFORE) + text
            case 3:
                at = rand.randrange(len(text) + 1)
                text = text[:at] + rand.choice(_INSIDE) + text[at:]
            case _:
                text = unicodedata.normalize(rand.choice(_FORMS), text)
    return text


def lay_out(number: int, *folders: Path) -> None:
    """The files of one number, each of which holds its own path."""
    for folder in folders:
        own = folder / f"d{number}"
        own.mkdir(parents=True)
        forms = {unicodedata.normalize(form, name) for form in _FORMS for name in NAMES}
        for name in forms | {f"{name} " for name in NAMES} | {f" {name}" for name in NAMES}:
            (own / name).write_text(str(own / name))
