"""A recording as the events of a session: what a transcript has of it, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bridle.cli.main import run
from bridle.cli.replaying import events_of
from bridle.process.recording import load_recording
from bridle.views import Transcript, entries, stream

HELLO = [{"type": "text", "text": "Hello."}]
SAYS = {
    "type": "assistant",
    "message": {"role": "assistant", "model": "m", "id": "1", "content": HELLO},
}
ASKS = {"type": "user", "uuid": "u1", "message": {"role": "user", "content": "Go"}}
LINES: list[dict[str, Any]] = [
    {"t": 0.5, "dir": "note", "msg": "begun"},
    {"t": 1, "dir": "in", "msg": {"type": "control_request", "request_id": "r", "request": {}}},
    {"t": 2, "dir": "in", "msg": ASKS},
    {"t": 3, "dir": "out", "msg": {"type": "keep_alive"}},
    {"t": 4, "dir": "out", "msg": SAYS},
    {"t": 5, "dir": "out", "msg": [1]},
    {"t": 6, "dir": "err", "msg": "oh"},
    {"t": 7, "dir": "out", "msg": {"type": "result", "subtype": "success", "is_error": False}},
]


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "wire.ndjson"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in LINES))
    return path


def test_each_line_that_tells_something_is_an_event_with_its_time(recording: Path) -> None:
    found = list(events_of(load_recording(recording)))
    assert [at for at, _ in found] == [line["t"] for line in LINES]
    events = [event for _, event in found if event]
    assert [(event.seq, event.at, event.kind) for event in events] == [
        (1, 2.0, stream.WROTE),
        (2, 4.0, stream.SAID),
        (3, 6.0, stream.STDERR),
        (4, 7.0, stream.SAID),
    ]
    transcript = Transcript()
    for event in events:
        transcript.add(event)
    prompt, text, stderr, end = transcript.page(after=0)
    assert isinstance(prompt, entries.Prompt)
    assert isinstance(text, entries.Text)
    assert isinstance(stderr, entries.Stderr)
    assert isinstance(end, entries.TurnEnd)
    assert (prompt.text.text, text.text.text, stderr.text.text) == ("Go", "Hello.", "oh")


def test_it_is_shown_at_once_or_as_json(recording: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["replay", str(recording), "--instant"]) == 0
    assert capfd.readouterr().out.startswith("> Go\n\n● Hello.\n")
    assert run(["replay", str(recording), "--json"]) == 0
    kinds = [json.loads(line)["kind"] for line in capfd.readouterr().out.splitlines()]
    assert kinds == ["prompt", "text", "stderr", "turn_end"]
    assert run(["replay", str(recording), "--speed", "1000"]) == 0
    assert "Hello." in capfd.readouterr().out
