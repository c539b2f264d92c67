"""Broken text in a line, made readable.

JavaScript cuts strings between the halves of a character and writes the half as an escape, which
no UTF-8 can hold; a request with one must not hang for it. Invalid UTF-8 likewise. Both are read
as U+FFFD.
"""

from __future__ import annotations

import re

_HEX = "[0-9a-fA-F]"
# A pair, or half of one. It begins with what is rare, so that long lines are searched fast.
_SURROGATES = re.compile(
    rf"\\u(?:[dD][89abAB]{_HEX}{{2}}\\u[dD][c-fC-F]{_HEX}{{2}}|[dD][89a-fA-F]{_HEX}{{2}})"
)
_ESCAPE_LENGTH = len(r"\ud800")
_REPLACEMENT = r"\ufffd"


def repair(line: bytes) -> bytes:
    """The line with U+FFFD where its text is broken; the same bytes where nothing is."""
    text = line.decode("utf-8", "replace")
    return _SURROGATES.sub(_whole, text).encode()


def _whole(found: re.Match[str]) -> str:
    escape = found[0]
    if _is_escaped(found.string, found.start()):
        # Its backslash is text; the half that may follow it is not.
        rest = escape[_ESCAPE_LENGTH:]
        return escape[:_ESCAPE_LENGTH] + (_REPLACEMENT if rest else "")
    return escape if len(escape) > _ESCAPE_LENGTH else _REPLACEMENT


def _is_escaped(text: str, at: int) -> bool:
    start = at
    while start and text[start - 1] == "\\":
        start -= 1
    return (at - start) % 2 == 1
