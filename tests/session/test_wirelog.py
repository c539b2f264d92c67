"""The wire as it was: for a function line by line, and never a harm to the session."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridle.process.recording import load_recording
from bridle.session.wirelog import WireLog


def test_a_function_is_given_whole_lines_and_at_the_end_what_is_left() -> None:
    lines: list[tuple[str, bytes]] = []
    log = WireLog(lambda *line: lines.append(line))
    log.received(b"one\ntw")
    log.sent(b"ours\n")
    log.sent(b"")
    log.complained("no line of the wire")
    log.received(b"o\nhal")
    assert lines == [("out", b"one"), ("in", b"ours"), ("out", b"two")]
    log.close()
    assert lines[3:] == [("out", b"hal")]


def test_a_file_has_both_sides_and_the_complaints(tmp_path: Path) -> None:
    for _ in range(2):  # it is appended to
        log = WireLog(tmp_path / "log")
        log.received(b'{"a":1}\n')
        log.sent(b'{"b":2}\n')
        log.complained("oh")
        log.close()
    found = [(entry.dir, entry.value()) for entry in load_recording(tmp_path / "log")]
    assert [one for one in found if one[0] != "note"] == [
        ("out", {"a": 1}),
        ("in", {"b": 2}),
        ("err", "oh"),
    ] * 2


@pytest.mark.parametrize("first", ["received", "sent"])
def test_a_function_that_fails_is_told_of_once_and_not_called_again(
    first: str, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[bytes] = []

    def fails(_: str, line: bytes) -> None:
        calls.append(line)
        raise ZeroDivisionError("theirs")

    log = WireLog(fails)
    getattr(log, first)(b"one\n")
    log.received(b"two\n")
    log.sent(b"three\n")
    log.close()
    assert calls == [b"one"]
    assert caplog.text.count("the wire is not logged any more: ZeroDivisionError: theirs") == 1


def test_a_file_that_can_not_be_written_any_more_harms_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = WireLog("/dev/full")
    log.complained("x" * 100_000)
    log.received(b"one\n")
    log.sent(b"two\n")
    log.close()
    assert caplog.text.count("not logged any more: OSError") == 1
