"""How much JSON a body may have in it, found without parsing it.

Owns the count of its values and its depth, piece by piece as they come: a body of 32 MB may be one
picture, but not ten million empty objects. It does not check that it is JSON: whoever parses does.
"""

from __future__ import annotations

import re

from msgspec import Struct

from .problems import Problem

#: A quote where none is open begins a string; each of the others begins a value, or ends one.
_STRUCTURE = re.compile(rb'["\[\]{},]')
#: Up to the quote at its end. Possessive: what was read is not read again.
_STRING = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)


class JsonLimits(Struct, frozen=True):
    """`values` counts strings, lists, objects, and what commas divide."""

    values: int = 100_000
    depth: int = 64


class JsonBounds:
    """Of one body. `add` raises a Problem as soon as it has too much."""

    def __init__(self, limits: JsonLimits) -> None:
        self._limits = limits
        self._values = 0
        self._depth = 0
        self._is_in_string = False
        self._is_escaped = False

    def add(self, piece: bytes) -> None:
        if b"\0" in piece:
            # No UTF-8, which has no NUL in its JSON; another encoding would be read otherwise.
            raise Problem(400, "invalid_body", "The body has NUL in it.", "Send JSON in UTF-8.")
        at = self._after_string(piece, 0) if self._is_in_string else 0
        while found := _STRUCTURE.search(piece, at):
            at = found.end()
            match found[0]:
                case b'"':
                    self._values += 1
                    self._is_in_string = True
                    at = self._after_string(piece, at)
                case b",":
                    self._values += 1
                case b"[" | b"{":
                    self._values += 1
                    self._depth += 1
                case _:
                    self._depth -= 1
            self._check()

    def _after_string(self, piece: bytes, at: int) -> int:
        """Where to go on; at the end of the piece, if the string does not end in it."""
        if self._is_escaped and at < len(piece):
            at, self._is_escaped = at + 1, False
        found = _STRING.match(piece, at)
        end = found.end() if found else at
        if end == len(piece):
            return end
        self._is_in_string = piece[end] != 0x22
        self._is_escaped = self._is_in_string  # a backslash at the very end
        return end + 1

    def _check(self) -> None:
        limits = self._limits
        if self._values > limits.values:
            words = f"The body has too many values: {limits.values} is the most."
            raise Problem(
                413,
                "too_many_values",
                words,
                "Send fewer at a time.",
                {"most": limits.values},
                {"connection": "close"},
            )
        if self._depth > limits.depth:
            words = f"The body is nested too deeply: {limits.depth} levels is the most."
            raise Problem(400, "invalid_body", words, "Send less.", headers={"connection": "close"})
        if self._depth < 0:
            words = "The body closes more lists and objects than it opens."
            raise Problem(400, "invalid_body", words, "Send JSON.", headers={"connection": "close"})
