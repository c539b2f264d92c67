"""How much of what happened an agent is shown at a time. Pure.

Owns where texts and inputs are cut. What was left out is counted in `cut`, so that whoever reads it
knows that there is more.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from .excerpts import DEPTH, SHORTER, shorter
from .happenings import Content, Happening

Detail: TypeAlias = Literal["normal", "full"]


class Sizes(Struct, frozen=True):
    """In characters: of the agent's own words, of any other text, of an input; and of an answer,
    in bytes of JSON."""

    words: int
    text: int
    input: int
    answer: int


SIZES: dict[Detail, Sizes] = {
    "normal": Sizes(words=8_000, text=2_000, input=4_000, answer=40_000),
    "full": Sizes(words=120_000, text=120_000, input=120_000, answer=200_000),
}
#: The texts of which there may be much.
_TEXTS = ("text", "prompt", "output", "result", "message", "reason", "why")


def shown(happening: Happening, detail: Detail, room: int = 1 << 30) -> Happening:
    """As much of it as there is room for: no text of it has more than `room` either."""
    sizes, changed, left_out = SIZES[detail], dict[str, Any](), 0
    for name in _TEXTS:
        text = getattr(happening, name, "")
        most = sizes.words if name == "result" or isinstance(happening, Content) else sizes.text
        most = min(most, room)
        if len(text) > most:
            changed[name] = text[:most]
            left_out += len(text) - most
    given = getattr(happening, "input", None)
    if given:
        cut, lost = cut_input(given, min(sizes.input, room))
        if lost:
            changed["input"] = cut
            left_out += lost
    return replace(happening, **changed, cut=left_out) if changed else happening


def cut_input(given: dict[str, Any], most: int) -> tuple[dict[str, Any], int]:
    """An input, and how many bytes of it were left out."""
    encoded = msgspec.json.encode(given)
    if len(encoded) <= most:
        return given, 0
    for text, items in ((most // 2, 40), *SHORTER):
        cut: dict[str, Any] = shorter(given, text, items, DEPTH)
        size = len(msgspec.json.encode(cut))
        if size <= most:
            return cut, max(len(encoded) - size, 1)
    return {"…": encoded[:1_000].decode(errors="replace")}, len(encoded) - 1_000


def size_of(happening: Happening) -> int:
    """In bytes of JSON."""
    return len(_encode(happening))


_encode = msgspec.json.Encoder().encode
