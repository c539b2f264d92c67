"""What of an approval is shown: the diff of a file, line for line."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from bridle.approvals import Approval
from bridle.approvals.model import (
    Agent,
    Approve,
    Cancelled,
    Decided,
    ForSession,
    PassedOver,
    Person,
    Reject,
    Step,
)
from bridle.approvals.shown import NO_NEWLINE, body_of, is_long, show, status_of


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


def test_a_short_text_that_replaces_a_long_file_is_long() -> None:
    given = {"file_path": "/a", "content": "one\n"}
    asked = replace(put(), tool="Write", input=given)
    assert is_long(asked, "line\n" * 200)
    assert not is_long(asked, "two\n")
    assert not is_long(asked)


def put(*steps: Step) -> Approval:
    return Approval(
        id="a",
        launch="l",
        session="s",
        created=0.0,
        kind="tool",
        tool="Bash",
        input={"command": "ls"},
        digest="",
        steps=steps,
    )


def test_a_person_sees_whom_it_was_put_to_and_why_it_went_on() -> None:
    first = Step(to="p", at=1.0, until=2.0, over=(PassedOver("o", "it has ended"),))
    shown = show(
        put(first, Step(to="r", at=2.0, why="session p did not answer in 1 second"), Step(at=3.0)),
        names={"p": "builder"},
    )
    lines = shown.splitlines()[1:5]
    assert lines[0] == "- passed over session o: it has ended"
    assert lines[1].startswith("- put to session builder until ")
    assert lines[2:] == [
        "- put to session r: session p did not answer in 1 second",
        "- put to people",
    ]


def test_what_an_agent_says_is_marked_as_its_words_and_stays_on_its_line() -> None:
    words = 'fine"\n! Only a person may decide this: and they have\x1b[2J'
    lines = show(put(Step(at=1.0, by="p", why=words))).splitlines()
    assert lines[1] == "- put to people: passed on by session p"
    assert lines[2].startswith('  the agent of session p says: "fine"\\n! Only')
    assert not any(line.startswith("!") or "\x1b" in line for line in lines)


def test_where_people_are_asked_from_the_start_nothing_is_said_of_that() -> None:
    assert show(put()).splitlines() == ["s wants to use Bash", "", "$ ls"]


def test_of_what_has_ended_a_person_sees_who_decided_and_what_was_remembered() -> None:
    yes = Decided(Agent("p"), Approve(remember=ForSession("Bash(ls)")), 2.0)
    allowed = replace(put(), status="allowed", ending=yes)
    words = "allowed by the agent of session builder (remembered: Bash(ls))"
    assert status_of(allowed, {"p": "builder"}) == words
    no = Decided(Person("me"), Reject("no\nstatus: allowed"), 2.0)
    assert status_of(replace(put(), status="denied", ending=no)).startswith("denied by me: no\\n")
    gone = replace(put(), status="cancelled", ending=Cancelled("process ended", 2.0))
    assert status_of(gone) == "cancelled: process ended"
    assert status_of(put()) == "pending"


def test_a_person_sees_a_working_directory_that_is_not_the_folder() -> None:
    at_home = replace(put(), folder="/work", cwd="/work")
    assert "working directory" not in show(at_home)
    assert "- working directory: /project/v\n" in show(replace(at_home, cwd="/project/v"))


def test_an_option_of_a_question_stays_on_its_line_and_draws_nothing() -> None:
    options = [{"label": "Yes\x1b[2J\n  2) No"}, {"label": "No\r\x1b[1A"}]
    given = {"questions": [{"question": "Go?\x1b[2J", "options": options}]}
    asked = replace(put(), kind="question", tool="AskUserQuestion", input=given)
    assert body_of(asked) == [
        "Go?\\u001b[2J",
        "  1) Yes\\u001b[2J\\n  2) No",
        "  2) No\\u000d\\u001b[1A",
    ]
