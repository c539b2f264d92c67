"""Bytes in any pieces -> whole lines.

Owns where a line begins and ends and how long it may be; does not know what is in it.

A line ends at LF; a CR before it is dropped; blank lines are dropped. NUL bytes and
invalid UTF-8 pass through: the codec judges them. What follows the last LF when the stream ends
is a line too. A line over the limit is never held: its first KiB and its length come out as
`Oversize` once it ends, and the stream goes on.
"""

from __future__ import annotations

from msgspec import Struct

DEFAULT_LIMIT = 64 * 1024 * 1024
HEAD_SIZE = 1024
LF = 0x0A


class Oversize(Struct, frozen=True):
    """A line that was longer than the limit and was skipped."""

    length: int
    head: bytes


class Unfinished(Struct, frozen=True):
    """The start of a line whose end has not arrived: what a later splitter needs to go on."""

    held: bytes = b""
    skipped: int = 0


class LineSplitter:
    """Splits a stream into lines, holding at most `limit` bytes of an unfinished one."""

    def __init__(
        self,
        limit: int = DEFAULT_LIMIT,
        unfinished: Unfinished | None = None,
        consumed: int = 0,
    ) -> None:
        if limit < 1:
            raise ValueError(f"a line limit must be at least 1 byte, not {limit}")
        self.limit = limit
        unfinished = unfinished or Unfinished()
        self._held = bytearray(unfinished.held)
        # Bytes of an oversize line that are gone; its first KiB is then all that is held.
        self._skipped = unfinished.skipped
        #: How many bytes the lines that came out were long, with their ends and with blank ones.
        self.consumed = consumed

    @property
    def unfinished(self) -> Unfinished:
        return Unfinished(bytes(self._held), self._skipped)

    def feed(self, data: bytes) -> list[bytes | Oversize]:
        """Take the next bytes of the stream; give the lines that they complete."""
        first, *rest = data.split(b"\n")
        if not rest:
            self._hold(first)
            return []
        tail = rest.pop()
        self.consumed += len(self._held) + self._skipped + len(data) - len(tail)
        lines: list[bytes | Oversize] = [self._complete(first), *rest]
        # Only when the whole piece is over the limit can a line inside of it be.
        if len(data) > self.limit:
            lines = [self._judge(line) for line in lines]
        self._hold(tail)
        # The CR may have been the last byte of an earlier piece, its LF the first of this one.
        if b"\r" in data or data[0] == LF:
            lines = [_without_cr(line) for line in lines]
        return [line for line in lines if line != b""] if b"" in lines else lines

    def finish(self) -> list[bytes | Oversize]:
        """The stream has ended: what is held is its last line."""
        self.consumed += len(self._held) + self._skipped
        line = _without_cr(self._complete(b""))
        return [line] if line else []

    def _hold(self, piece: bytes) -> None:
        self._held += piece
        if self._skipped or len(self._held) > self.limit:
            self._skipped += max(0, len(self._held) - HEAD_SIZE)
            del self._held[HEAD_SIZE:]

    def _complete(self, end: bytes) -> bytes | Oversize:
        """The line that was held, with its end."""
        if not self._held:
            return self._judge(end)
        self._held += end
        line, skipped = bytes(self._held), self._skipped
        self._held.clear()
        self._skipped = 0
        if skipped:
            return Oversize(len(line) + skipped, line[:HEAD_SIZE])
        return self._judge(line)

    def _judge(self, line: bytes | Oversize) -> bytes | Oversize:
        if isinstance(line, Oversize) or len(line) <= self.limit:
            return line
        return Oversize(len(line), line[:HEAD_SIZE])


def _without_cr(line: bytes | Oversize) -> bytes | Oversize:
    return line.removesuffix(b"\r") if isinstance(line, bytes) else line
