"""Recordings of a wire: one JSON object a line, with time, direction and what was said.

    {"t": 0.0123, "dir": "in",  "msg": {…}}     what the controller wrote
    {"t": 0.0456, "dir": "out", "msg": {…}}     what the CLI wrote
    {"t": 0.0460, "dir": "err", "msg": "…"}     what it wrote to stderr
    {"t": 0.0001, "dir": "note", "msg": …}      what the recorder adds: argv, exit code

A line that is not JSON is kept exactly, as `{"raw": base64}` in place of `msg`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
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

    @property
    def line(self) -> bytes:
        """The bytes that were on the wire, without their newline."""
        return self.raw or bytes(self.msg)

    def value(self) -> Any:
        return msgspec.json.decode(self.msg) if self.msg else None


class Recorder:
    """Writes a recording while it is open; each entry is on disk as soon as it is written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._start = time.monotonic()
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Self:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._path.open("wb", buffering=0)
        self._start = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if self._file:
            self._file.close()
            self._file = None

    def sent(self, lines: bytes) -> None:
        for line in lines.splitlines():
            self._wire("in", line)

    def received(self, line: bytes) -> None:
        self._wire("out", line)

    def stderr(self, text: str) -> None:
        self.note(text, "err")

    def note(self, value: Any, direction: Direction = "note") -> None:
        self._write(Entry(self._now(), direction, Raw(msgspec.json.encode(value))))

    def _wire(self, direction: Direction, line: bytes) -> None:
        try:
            msgspec.json.decode(line)
            entry = Entry(self._now(), direction, Raw(line))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            entry = Entry(self._now(), direction, raw=line)
        self._write(entry)

    def _now(self) -> float:
        return round(time.monotonic() - self._start, 4)

    def _write(self, entry: Entry) -> None:
        if self._file is None:
            raise InvalidScript(f"the recorder of {self._path} is not open")
        self._file.write(msgspec.json.encode(entry) + b"\n")


def load_recording(path: Path) -> list[Entry]:
    """Read a recording; a line that is not one is named in the error."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise InvalidScript(f"can't read the recording {path}: {error.strerror}") from error
    return list(_entries(path, lines))


def _entries(path: Path, lines: Iterable[bytes]) -> Iterable[Entry]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield msgspec.json.decode(line, type=Entry)
        except msgspec.DecodeError as error:
            raise InvalidScript(f"{path}, line {number}: not a recording: {error}") from error
