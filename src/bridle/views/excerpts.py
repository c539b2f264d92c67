"""How much of a text, an input or an image a view keeps. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from ..protocol.blocks import Base64Source, FileSource, ImageBlock, UrlSource
from .entries import Excerpt, Picture

#: So many characters of a text or a result are kept.
MAX_TEXT = 64 * 1024
#: Of what stays open, and so is kept in a fold's state, less: a record has at most 256 KB.
MAX_OPEN = 8 * 1024
#: So much of each text, and so many parts, of an input that is too long.
SHORTER = ((1_000, 20), (100, 10))
DEPTH = 4


def excerpt(text: str, limit: int = MAX_TEXT) -> Excerpt:
    if len(text) <= limit:
        return Excerpt(text)
    return Excerpt(text[:limit], is_cut=True, size=len(text))


def raw_excerpt(raw: bytes, limit: int = MAX_OPEN) -> Excerpt:
    text = raw[: 4 * limit].decode(errors="replace")[:limit]
    is_cut = len(raw) > len(text.encode())
    return Excerpt(text, is_cut=is_cut, size=len(raw) if is_cut else 0)


def input_excerpt(given: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """An input, and whether it had to be cut."""
    encoded = msgspec.json.encode(given)
    if len(encoded) <= MAX_OPEN:
        return given, False
    for text, items in SHORTER:
        cut: dict[str, Any] = shorter(given, text, items, DEPTH)
        if len(msgspec.json.encode(cut)) <= MAX_OPEN:
            return cut, True
    return {"…": encoded[:1_000].decode(errors="replace")}, True


def picture(block: ImageBlock) -> Picture:
    match block.source:
        case Base64Source(data=data, media_type=media_type):
            # Three bytes to four letters, but for the padding: no need to decode it.
            return Picture(media_type, len(data) * 3 // 4 - data[-2:].count("="))
        case UrlSource(url=url):
            return Picture("", url=url[:1_000])
        case FileSource(file_id=file_id):
            return Picture("", url=file_id[:1_000])


def shorter(value: Any, text: int, items: int, depth: int) -> Any:
    """A value with so much of each text, so many parts, and so deep."""
    match value:
        case str() if len(value) > text:
            return f"{value[:text]}… ({len(value) - text} more characters)"
        case dict() | list() if not depth:
            return "…"
        case dict():
            shown = list(value.items())[:items]
            return {name[:text]: shorter(item, text, items, depth - 1) for name, item in shown}
        case list():
            return [shorter(item, text, items, depth - 1) for item in value[:items]]
        case _:
            return value
