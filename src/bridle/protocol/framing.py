"""Bytes in any pieces -> whole lines.

Owns where a line begins and ends and how long it may be; does not know what is in it.

A line ends at LF; a CR before it is dropped; blank lines are dropped and counted. NUL bytes and
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

    def __init__(self, limit: int = DEFAULT_LIMIT, unfinished: Unfinished | None = None) -> None:
        if limit < 1:
            raise ValueError(f"a line limit must be at least 1 byte, not {limit}")
        self.limit = limit
        self.blank_lines = 0
        unfinished = unfinished or Unfinished()
        self._pieces: list[bytes] = [unfinished.held] if unfinished.held else []
        self._held = len(unfinished.held)
        # Bytes of an oversize line that are gone; its first KiB is then all that _pieces holds.
        self._skipped = unfinished.skipped

    @property
    def unfinished(self) -> Unfinished:
        return Unfinished(b"".join(self._pieces), self._skipped)

    def feed(self, data: bytes) -> list[bytes | Oversize]:
        """Take the next bytes of the stream; give the lines that they complete."""
        first, *rest = data.split(b"\n")
        if not rest:
            self._hold(first)
            return []
        self._pieces.append(first)
        self._held += len(first)
        tail = rest.pop()
        lines: list[bytes | Oversize] = [self._take()]
        # Only when the whole piece is over the limit can a line inside of it be.
        if len(data) > self.limit:
            lines += [self._judge(line) for line in rest]
        else:
            lines += rest
        self._hold(tail)
        # The CR may have been the last byte of an earlier piece, its LF the first of this one.
        if b"\r" in data or data[0] == LF:
            lines = [_without_cr(line) for line in lines]
        return self._without_blanks(lines) if b"" in lines else lines

    def finish(self) -> list[bytes | Oversize]:
        """The stream has ended: what is held is its last line."""
        if not self._pieces:
            return []
        return self._without_blanks([_without_cr(self._take())])

    def _hold(self, piece: bytes) -> None:
        if not piece:
            return
        self._pieces.append(piece)
        self._held += len(piece)
        if self._skipped or self._held > self.limit:
            head = _head_of(self._pieces)
            self._skipped += self._held - len(head)
            self._pieces, self._held = [head], len(head)

    def _take(self) -> bytes | Oversize:
        line = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        skipped = self._skipped
        self._pieces, self._held, self._skipped = [], 0, 0
        if skipped:
            return Oversize(len(line) + skipped, line[:HEAD_SIZE])
        return self._judge(line)

    def _judge(self, line: bytes) -> bytes | Oversize:
        return line if len(line) <= self.limit else Oversize(len(line), line[:HEAD_SIZE])

    def _without_blanks(self, lines: list[bytes | Oversize]) -> list[bytes | Oversize]:
        kept = [line for line in lines if line != b""]
        self.blank_lines += len(lines) - len(kept)
        return kept


def _head_of(pieces: list[bytes]) -> bytes:
    # Joining all the pieces first would double the memory at the very limit of it.
    head = b""
    for piece in pieces:
        head += piece[: HEAD_SIZE - len(head)]
        if len(head) == HEAD_SIZE:
            break
    return head


def _without_cr(line: bytes | Oversize) -> bytes | Oversize:
    return line.removesuffix(b"\r") if isinstance(line, bytes) else line
