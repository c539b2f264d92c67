"""An approval in somebody's editor: real programs, on a file that nobody else can read."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from bridle.approvals.editing import run_editor
from tests.process.children import is_alive

LIMIT = 20.0


def program(folder: Path, name: str, script: str) -> str:
    file = folder / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return str(file)


async def test_visual_comes_before_editor_and_gives_what_it_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    visual = program(
        tmp_path, "visual", f'cp "$2" {tmp_path}/was; echo "$1 $2" >{tmp_path}/given; echo b >"$2"'
    )
    editor = program(tmp_path, "editor", 'echo c >"$1"')
    monkeypatch.setenv("VISUAL", f"{visual} --wait")
    monkeypatch.setenv("EDITOR", editor)
    assert await run_editor("a\n", ".sh") == "b\n"
    option, file = (tmp_path / "given").read_text().split()
    assert (option, Path(file).suffix, Path(file).exists()) == ("--wait", ".sh", False)  # noqa: ASYNC240
    assert (tmp_path / "was").read_text() == "a\n"
    monkeypatch.setenv("VISUAL", "")
    assert await run_editor("a\n", ".sh") == "c\n"


@pytest.mark.parametrize("trap", ["", "trap '' TERM"])
async def test_an_editor_that_nobody_needs_any_more_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trap: str
) -> None:
    started = tmp_path / "started"
    os.mkfifo(started)
    monkeypatch.setattr("bridle.approvals.editing.END_SECONDS", 0.1)
    monkeypatch.setenv(
        "VISUAL", program(tmp_path, "v", f"{trap}\necho $$ >{started}\nread x <{started}")
    )
    editing = asyncio.ensure_future(run_editor("a", ".md"))
    pid = int(await asyncio.to_thread(started.read_text))
    editing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(editing, LIMIT)
    assert not is_alive(pid)
