"""What real CLIs said, as our own kit recorded it, decodes whole: nothing unknown, nothing lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridle.protocol import Connection, MessageReceived, RequestReceived, Unknown
from bridle.protocol.capabilities import TESTED_VERSIONS
from bridle.protocol.content import suggestions, unknown_parts
from bridle.protocol.control import CanUseTool
from bridle.protocol.events import LineMalformed, RequestUnreadable
from bridle.testing import Replay, load_recording

WIRES = Path(__file__).resolve().parents[1] / "wires"
FILES = sorted(WIRES.glob("*/*.ndjson"))


def unknown_in(event: MessageReceived | RequestReceived) -> list[Unknown]:
    if isinstance(event, MessageReceived):
        return unknown_parts(event.message)
    asked = event.request
    suggested = suggestions(asked) if isinstance(asked, CanUseTool) else []
    return [*unknown_parts(asked), *(s for s in suggested if isinstance(s, Unknown))]


def test_there_are_recordings_of_every_tested_version() -> None:
    assert {file.parent.name for file in FILES} == set(TESTED_VERSIONS)
    names = [{file.name for file in FILES if file.parent.name == v} for v in TESTED_VERSIONS]
    assert names[0] == names[1] == names[2]


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_a_recording_decodes_with_nothing_unknown(file: Path) -> None:
    connection = Connection(nonce="later")
    lines = [entry.line for entry in load_recording(file) if entry.dir == "out"]
    events = connection.receive(b"".join(line + b"\n" for line in lines))
    assert len(events) >= len(lines)
    wrong = [e for e in events if isinstance(e, LineMalformed | RequestUnreadable)]
    spoken = [e for e in events if isinstance(e, MessageReceived | RequestReceived)]
    unknown = [part for event in spoken for part in unknown_in(event)]
    assert (wrong, unknown) == ([], [])


@pytest.mark.parametrize("version", TESTED_VERSIONS)
async def test_a_recording_is_played_back_line_by_line(
    version: str, tmp_path: Path, piped_cli: object
) -> None:
    path = WIRES / version / "allow.ndjson"
    entries = load_recording(path)
    cli = await piped_cli(Replay(path).command)  # type: ignore[operator]
    for entry in entries:
        if entry.dir == "in":
            cli.write(entry.line + b"\n")
    cli.close_stdin()
    assert await cli.exit_code() == 0
    said = [event.raw for event in cli.events[:-1]]
    assert said == [entry.line for entry in entries if entry.dir == "out"]
