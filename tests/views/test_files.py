"""Files that were touched: counted by tool, with their lines, and only where it came to it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bridle.protocol.capabilities import TESTED_VERSIONS
from bridle.views import FilesState, FileUse, files, stream

from .helpers import Told, recorded


def touched(entries: list[stream.Entry]) -> dict[str, FileUse]:
    state = FilesState()
    for entry in entries:
        files.fold(state, entry)
    assert state.open == {}
    return {**state.read, **state.changed}


def patch(*lines: str) -> dict[str, Any]:
    return {"filePath": "/a", "originalFile": "x\n", "structuredPatch": [{"lines": list(lines)}]}


@pytest.mark.parametrize("version", TESTED_VERSIONS)
def test_a_file_that_a_real_cli_made_is_created(version: str) -> None:
    (use,) = touched(recorded(version, "plan_approval")).values()
    assert use.path.endswith("/planned.txt")
    assert (use.origin, use.changes, use.tools) == ("created", 1, {"Write": 1})
    assert (use.added, use.removed) == (1, 0)


def test_changes_are_counted_by_tool_with_their_lines() -> None:
    told = Told()
    told.calls("r", "Read", file_path="/a")
    told.gives("r", "x")
    told.calls("e", "Edit", file_path="/a")
    told.gives("e", "done", tool_use_result=patch(" same", "-old", "+new", "+more"))
    told.calls("n", "NotebookEdit", notebook_path="/b.ipynb")
    told.gives("n", "done")
    used = touched(told.entries)
    assert used["/a"] == FileUse(
        path="/a",
        first=2,
        last=4,
        changes=1,
        reads=1,
        tools={"Read": 1, "Edit": 1},
        origin="there",
        added=2,
        removed=1,
    )
    assert (used["/b.ipynb"].origin, used["/b.ipynb"].changes) == ("unknown", 1)


def test_a_created_file_stays_created_when_it_is_changed() -> None:
    told = Told()
    told.calls("w", "Write", file_path="/a", content="1\n2\n")
    done = {"type": "create", "filePath": "/a", "content": "1\n2\n", "structuredPatch": []}
    told.gives("w", "ok", tool_use_result=done)
    told.calls("e", "Edit", file_path="/a")
    told.gives("e", "ok", tool_use_result=patch("-1", "+one"))
    use = touched(told.entries)["/a"]
    assert (use.origin, use.changes, use.added, use.removed) == ("created", 2, 3, 1)


def test_a_call_that_failed_or_was_denied_does_not_count() -> None:
    told = Told()
    told.calls("w", "Write", file_path="/a")
    told.gives("w", "denied", is_error=True, tool_use_result="Error: denied")
    assert touched(told.entries) == {}


def test_the_file_is_the_one_that_the_result_names() -> None:
    told = Told()
    told.calls("w", "Write", file_path="/asked")
    told.gives("w", "ok", tool_use_result={"type": "create", "filePath": "/really"})
    assert list(touched(told.entries)) == ["/really"]


def test_results_of_any_shape_are_survived() -> None:
    told = Told()
    odd: list[Any] = [None, "Error", [1], {"structuredPatch": 5}, {"filePath": []}]
    for number, done in enumerate(odd):
        told.calls(f"w{number}", "Write", file_path="/a")
        told.gives(f"w{number}", "ok", tool_use_result=done)
    told.calls("odd", "Write", file_path=["not", "text"])
    assert touched(told.entries)["/a"].changes == 5


def test_files_beyond_the_limit_are_only_counted_and_those_that_were_read_go_first() -> None:
    told, state = Told(), FilesState()
    for number in range(1_500):
        tool = "Read" if number < 500 else "Write"
        told.calls("t", tool, file_path=f"/{number}/{'x' * 80}")
        told.gives("t", "x")
    for entry in told.entries:
        files.fold(state, entry)
    assert state.read == {}
    assert 500 < len(state.changed) < 1_000
    assert state.more == 1_500 - len(state.changed)
    assert len(msgspec.json.encode(state)) < 256 * 1024


def test_a_file_that_is_read_and_then_changed_is_listed_once() -> None:
    told, state = Told(), FilesState()
    for tool in ("Read", "Edit", "Read"):
        told.calls("t", tool, file_path="/a")
        told.gives("t", "x")
    for entry in told.entries:
        files.fold(state, entry)
    assert state.read == {}
    assert (state.changed["/a"].reads, state.changed["/a"].changes) == (2, 1)
