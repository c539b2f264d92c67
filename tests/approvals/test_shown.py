"""What of an approval is shown: the diff of a file, line for line."""

from __future__ import annotations

from typing import Any

import pytest

from bridle.approvals import Approval
from bridle.approvals.shown import NO_NEWLINE, body_of


def diff(tool: str, before: str | None = None, **given: Any) -> list[str]:
    """The lines below the name of the file and the place in it."""
    approval = Approval(
        id="a",
        launch="l",
        session="s",
        created=0.0,
        kind="tool",
        tool=tool,
        input={"file_path": "/a", **given},
        digest="",
    )
    return body_of(approval, before=before)[3:]


@pytest.mark.parametrize(
    ("before", "content", "shown"),
    [
        (None, "one\n", ["+one"]),
        (None, "one\n\n", ["+one", "+"]),
        (None, "one", ["+one", NO_NEWLINE]),
        ("one\n", "one", ["-one", "+one", NO_NEWLINE]),
        ("one", "one\n", ["-one", NO_NEWLINE, "+one"]),
        ("one\ntwo\n", "one\n", [" one", "-two"]),
        ("one", "two", ["-one", "+two"]),
    ],
)
def test_a_newline_ends_a_line_and_begins_none(
    before: str | None, content: str, shown: list[str]
) -> None:
    assert diff("Write", before, content=content) == shown


def test_of_a_piece_of_a_file_nothing_is_said_about_its_end() -> None:
    assert diff("Edit", old_string="x = 1", new_string="x = 2") == ["-x = 1", "+x = 2"]
