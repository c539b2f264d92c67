"""Lists on a terminal: a row is a line, however narrow that is."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from bridle.cli.commands.listing import FIT, HEADS
from bridle.cli.tables import Cell, Fit, build_table


def seen(width: int, heads: tuple[str, ...], rows: list[list[Cell]], fit: Fit | None) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    console.print(build_table(heads, rows, fit, width))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def row(
    name: str = "fixer-of-the-tests", folder: str = "/srv/team/some/long/way/down/app"
) -> list[Cell]:
    state = ("awaiting approval", "bold yellow")
    return [name, "0195d7a2", state, folder, "12", "$10.25", "12m", ("1", "bold")]


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_a_session_is_one_line_with_its_name_id_and_state(width: int) -> None:
    head, *lines = seen(width, HEADS, [row(), row("b", "/b")], FIT)
    assert len(lines) == 2
    assert head.split()[:3] == ["NAME", "ID", "STATE"]
    assert head.split()[-1] == "WAITING"
    assert lines[0].split()[:4] == ["fixer-of-the-tests", "0195d7a2", "awaiting", "approval"]
    assert all(len(line.rstrip()) <= width for line in lines)


def test_what_there_is_no_room_for_goes_and_a_folder_is_cut_in_its_middle() -> None:
    assert "TURNS" in seen(120, HEADS, [row()], FIT)[0]
    head, line = seen(80, HEADS, [row()], FIT)
    assert "TURNS" not in head
    assert "FOLDER" in head
    assert "/srv" in line
    assert "…" in line
    assert "/app " in line
    assert "FOLDER" not in seen(60, HEADS, [row()], FIT)[0]


def test_a_folder_below_ones_own_begins_with_a_tilde(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert "  ~/app  " in seen(200, HEADS, [row(folder=f"{tmp_path}/app")], FIT)[1]
    assert "  ~  " in seen(200, HEADS, [row(folder=str(tmp_path))], FIT)[1]
    assert f"  {tmp_path}s  " in seen(300, HEADS, [row(folder=f"{tmp_path}s")], FIT)[1]


def test_a_name_that_is_wider_than_the_terminal_is_cut_and_not_broken() -> None:
    (line,) = seen(60, HEADS, [row("n" * 90)], FIT)[1:]
    assert line.startswith("nnnn")
    assert "…  0195d7a2  awaiting approval" in line


def test_in_other_tables_words_are_broken_and_ids_are_not() -> None:
    lines = seen(40, ("id", "rule"), [["0195d7a2", "Bash(" + "x" * 60 + ")"]], None)
    assert "".join(line[8:].strip() for line in lines[1:]) == "Bash(" + "x" * 60 + ")"
    assert lines[1].startswith("0195d7a2  ")
