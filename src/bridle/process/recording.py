"""Recordings of a wire: one JSON object a line, with time, direction and what was said.

    {"t": 0.0123, "dir": "in",  "msg": {…}}     what the controller wrote
    {"t": 0.0456, "dir": "out", "msg": {…}}     what the CLI wrote
    {"t": 0.0460, "dir": "err", "msg": "…"}     what it wrote to stderr
    {"t": 0.0001, "dir": "note", "msg": …}      what the recorder adds: argv, "stdin closed", exit

A line that is not JSON is kept exactly, as `{"raw": base64}` in place of `msg`; one that ended
without a newline is marked `"torn": true`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Literal, Self

import msgspec
from msgspec import Raw, Struct

from ..errors import InvalidScript

Direction = Literal["in", "out", "err", "note"]


class Entry(Struct, omit_defaults=True):
    """One line of a recording."""

    t: float
    dir: Direction
    msg: Raw = Raw()
    raw: bytes = b""
    torn: bool = False

    @property
    def line(self) -> bytes:
        """The bytes that were on the wire, without their newline."""
        return self.raw or bytes(self.msg)

    def value(self) -> Any:
        return msgspec.json.decode(self.msg) if self.msg else None


class WholeLines:
    """Lines as they are, from bytes in any pieces; a line in many pieces is joined once."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def add(self, data: bytes) -> list[bytes]:
        """The lines that these bytes complete."""
        *lines, half = data.split(b"\n")
        if lines:
            lines[0] = b"".join((*self._pieces, lines[0]))
            self._pieces.clear()
        if half:
            self._pieces.append(half)
        return lines

    def rest(self) -> bytes:
        """What has no newline yet; it is then forgotten."""
        half = b"".join(self._pieces)
        self._pieces.clear()
        return half


class Recorder:
    """Writes a recording while it is open; each entry is on disk as soon as it is written."""

    def __init__(self, path: Path | str, *, append: bool = False) -> None:
        self.path = Path(path)
        self._mode: Literal["ab", "wb"] = "ab" if append else "wb"
        self._start = time.monotonic()
        self._file: IO[bytes] | None = None
        self._halves: dict[Direction, WholeLines] = {"in": WholeLines(), "out": WholeLines()}

    def __enter__(self) -> Self:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open(self._mode, buffering=0)
        except OSError as error:
            raise InvalidScript(f"can't record to {self.path}: {error.strerror}") from error
        self._start = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_open(self) -> bool:
        return self._file is not None

    def close(self) -> None:
        """Write down what had no newline yet, and close the file; again is nothing."""
        if self._file:
            try:
                for direction in ("in", "out"):
                    self.end_of(direction)
            finally:
                self._file.close()
                self._file = None

    def sent(self, data: bytes) -> None:
        """Bytes that the controller wrote, in any pieces."""
        self._wire("in", data)

    def received(self, data: bytes) -> None:
        """Bytes that the CLI wrote, in any pieces."""
        self._wire("out", data)

    def end_of(self, direction: Direction) -> None:
        """No more bytes will come this way."""
        half = self._halves[direction].rest()
        if half:
            self._write(_entry(self._now(), direction, half, torn=True))

    def stderr(self, text: str) -> None:
        self.note(text, "err")

    def note(self, value: Any, direction: Direction = "note") -> None:
        self._write(Entry(self._now(), direction, Raw(msgspec.json.encode(value))))

    def _wire(self, direction: Direction, data: bytes) -> None:
        for line in self._halves[direction].add(data):
            self._write(_entry(self._now(), direction, line))

    def _now(self) -> float:
        return round(time.monotonic() - self._start, 4)

    def _write(self, entry: Entry) -> None:
        if self._file is None:
            raise InvalidScript(f"the recorder of {self.path} is not open")
        self._file.write(msgspec.json.encode(entry) + b"\n")


def load_recording(path: Path | str) -> list[Entry]:
    """Read a recording; a line that is not one is named in the error."""
    try:
        # Not splitlines(): a CR may stand inside of a line.
        lines = Path(path).read_bytes().split(b"\n")
    except OSError as error:
        raise InvalidScript(f"can't read the recording {path}: {error.strerror}") from error
    return list(_entries(path, lines))


def _entries(path: Path | str, lines: list[bytes]) -> Iterator[Entry]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield msgspec.json.decode(line, type=Entry)
        except msgspec.DecodeError as error:
            raise InvalidScript(f"{path}, line {number}: not a recording: {error}") from error


def _entry(now: float, direction: Direction, line: bytes, torn: bool = False) -> Entry:
    try:
        msgspec.json.decode(line)
        return Entry(now, direction, Raw(line), torn=torn)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Entry(now, direction, raw=line, torn=torn)
