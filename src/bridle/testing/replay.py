"""Plays a recording back as a fake CLI that checks what it is sent.

    python -m bridle.testing.replay FILE [the real CLI's flags, ignored]

What the CLI once wrote is written again; what it once read must come again, in the same order.
Ids that the controller makes anew each time (its request ids, the uuids of its prompts) may
differ: they are learnt as they come and put into what is written. So may the `onFailure` of hooks,
which depends on the version that is known of a CLI. Anything else that differs ends it with exit
code 3 and one line on stderr that names the recording's line.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from ..errors import InvalidScript, UnexpectedTraffic
from ..process.interpreter import own_program
from ..process.recording import Entry, load_recording

MISMATCH = 3


class Replay:
    """The command that plays a recording; the recording is checked before anything runs."""

    def __init__(self, path: Path | str) -> None:
        load_recording(path)
        self.command = list(own_program("bridle.testing.replay", str(path)))


class Player:
    """Goes through a recording, with stdin and stdout in place of the real CLI's."""

    def __init__(self, entries: list[Entry]) -> None:
        self._entries = entries
        self._renamed: dict[str, str] = {}
        self._input = _lines_of(0)

    def play(self) -> int:
        """The exit code of the process that was recorded; negative for a signal."""
        for number, entry in enumerate(self._entries, 1):
            match entry.dir:
                case "out":
                    _write(1, self._rename(entry.line) + (b"" if entry.torn else b"\n"))
                case "err":
                    _write(2, str(entry.value()).encode())
                case "in":
                    self._expect(number, entry)
                case "note":
                    code = self._obey(number, entry.value())
                    if code is not None:
                        return code
        self._end(len(self._entries))
        return 0

    def _obey(self, number: int, note: Any) -> int | None:
        if note == "stdin closed":
            self._end(number)
        code = note.get("exit", note.get("returncode")) if isinstance(note, dict) else None
        return code if isinstance(code, int) else None

    def _expect(self, number: int, entry: Entry) -> None:
        line = next(self._input, None)
        if line is None:
            raise UnexpectedTraffic(
                f"line {number}: stdin was closed where {_gist(entry.line)} was due"
            )
        try:
            sent, due = msgspec.json.decode(line), entry.value()
        except (msgspec.DecodeError, UnicodeDecodeError):
            sent, due = line, entry.line
        if isinstance(sent, dict) and isinstance(due, dict):
            self._learn(due, sent)
        if _without_version(sent) != _without_version(self._translated(due)):
            raise UnexpectedTraffic(
                f"line {number}: expected {_gist(entry.line)}, was sent {_gist(line)}"
            )

    def _learn(self, due: dict[str, Any], sent: dict[str, Any]) -> None:
        """The ids that a controller makes anew: of its requests, and of its prompts."""
        key = {"control_request": "request_id", "user": "uuid"}.get(str(due.get("type")))
        if key and isinstance(due.get(key), str) and isinstance(sent.get(key), str):
            self._renamed.setdefault(due[key], sent[key])

    def _translated(self, value: Any) -> Any:
        match value:
            case str():
                return self._renamed.get(value, value)
            case list():
                return [self._translated(item) for item in value]
            case dict():
                return {key: self._translated(item) for key, item in value.items()}
        return value

    def _rename(self, line: bytes) -> bytes:
        for old, new in self._renamed.items():
            line = line.replace(msgspec.json.encode(old), msgspec.json.encode(new))
        return line

    def _end(self, number: int) -> None:
        extra = next(self._input, None)
        if extra is not None:
            raise UnexpectedTraffic(
                f"after line {number}: was sent {_gist(extra)} where nothing was due"
            )


def _without_version(line: Any) -> Any:
    """An `initialize` without what a controller says only to a CLI whose version it knows: it can't
    tell before which one is played back."""
    match line:
        case {"request": {"subtype": "initialize", "hooks": dict(hooks)} as request}:
            plain = {event: list(map(_without_failure, of)) for event, of in hooks.items()}
            return {**line, "request": {**request, "hooks": plain}}
    return line


def _without_failure(matcher: Any) -> Any:
    return {key: value for key, value in matcher.items() if key != "onFailure"}


def _lines_of(fd: int) -> Iterator[bytes]:
    buffer = b""
    while data := os.read(fd, 1 << 16):
        *lines, buffer = (buffer + data).split(b"\n")
        yield from lines
    if buffer:
        yield buffer


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _gist(line: bytes) -> str:
    text = line.decode("utf-8", "replace")
    return text if len(text) <= 400 else f"{text[:400]}… ({len(text)} characters)"


def main() -> int:
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        _write(2, b"replay: give it a recording: python -m bridle.testing.replay FILE\n")
        return 2
    try:
        code = Player(load_recording(Path(sys.argv[1]))).play()
    except InvalidScript as error:
        _write(2, f"replay: {error}\n".encode())
        return 2
    except UnexpectedTraffic as error:
        _write(2, f"replay: {sys.argv[1]}: {error}\n".encode())
        return MISMATCH
    if code < 0:
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    sys.exit(main())
