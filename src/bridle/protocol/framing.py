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
GATHER_SIZE = 4096
LF = 0x0A


class Oversize(Struct, frozen=True):
    """A line that was longer than the limit and was skipped."""

    length: int
    head: bytes


class Unfinished(Struct, frozen=True):
    """The start of a line whose end has not arrived: what a later splitter needs to go on."""

    held: bytes = b""
    skipped: int = 0


class _Pieces:
    """The bytes of an unfinished line: what is large is kept as it came, what is small gathered.

    So a line of tiny pieces takes no more memory than its bytes, and a large one is not copied
    until it is whole.
    """

    def __init__(self, start: bytes) -> None:
        self._large = [start] if start else []
        self._small = bytearray()
        self.size = len(start)

    def add(self, piece: bytes) -> None:
        self.size += len(piece)
        if len(piece) < GATHER_SIZE:
            self._small += piece
            if len(self._small) < GATHER_SIZE:
                return
            piece = b""
        if self._small:
            self._large.append(bytes(self._small))
            self._small.clear()
        if piece:
            self._large.append(piece)

    def joined(self) -> bytes:
        return b"".join((*self._large, self._small))

    def head(self) -> bytes:
        """The first KiB, without joining the rest: that would double the memory at its limit."""
        head = b""
        for piece in (*self._large, bytes(self._small)):
            head += piece[: HEAD_SIZE - len(head)]
        return head


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
        self._held = _Pieces(unfinished.held)
        # Bytes of an oversize line that are gone; its first KiB is then all that is held.
        self._skipped = unfinished.skipped
        #: How many bytes the lines that came out were long, with their ends and with blank ones.
        self.consumed = consumed

    @property
    def unfinished(self) -> Unfinished:
        return Unfinished(self._held.joined(), self._skipped)

    def feed(self, data: bytes) -> list[bytes | Oversize]:
        """Take the next bytes of the stream; give the lines that they complete."""
        first = data.find(b"\n")
        if first < 0:
            # `split` would look at every byte by itself.
            self._hold(data)
            return []
        if first == len(data) - 1 and not self._held.size and len(data) <= self.limit:
            # One whole line: what a CLI writes that waits for an answer.
            self.consumed += len(data)
            line = data[:-1].removesuffix(b"\r")
            return [line] if line else []
        lines: list[bytes | Oversize] = [*data.split(b"\n")]
        tail = lines.pop()
        assert isinstance(tail, bytes)
        self.consumed += self._held.size + self._skipped + len(data) - len(tail)
        if self._held.size:
            assert isinstance(lines[0], bytes)
            lines[0] = self._complete(lines[0])
        # Only when the whole piece is over the limit can a line inside of it be.
        if len(data) > self.limit:
            lines = [self._judge(line) for line in lines]
        if tail:
            self._hold(tail)
        # The CR may have been the last byte of an earlier piece, its LF the first of this one.
        if b"\r" in data or data[0] == LF:
            lines = [_without_cr(line) for line in lines]
        return [line for line in lines if line != b""] if b"" in lines else lines

    def finish(self) -> list[bytes | Oversize]:
        """The stream has ended: what is held is its last line."""
        self.consumed += self._held.size + self._skipped
        line = _without_cr(self._complete(b""))
        return [line] if line else []

    def _hold(self, piece: bytes) -> None:
        if piece:
            self._held.add(piece)
            if self._skipped or self._held.size > self.limit:
                head = self._held.head()
                self._skipped += self._held.size - len(head)
                self._held = _Pieces(head)

    def _complete(self, end: bytes) -> bytes | Oversize:
        """The line that was held, with its end."""
        if not self._held.size:
            return self._judge(end)
        self._held.add(end)
        line, skipped = self._held.joined(), self._skipped
        self._held, self._skipped = _Pieces(b""), 0
        if skipped:
            return Oversize(len(line) + skipped, line[:HEAD_SIZE])
        return self._judge(line)

    def _judge(self, line: bytes | Oversize) -> bytes | Oversize:
        if isinstance(line, Oversize) or len(line) <= self.limit:
            return line
        return Oversize(len(line), line[:HEAD_SIZE])


def _without_cr(line: bytes | Oversize) -> bytes | Oversize:
    return line.removesuffix(b"\r") if isinstance(line, bytes) else line
