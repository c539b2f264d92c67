"""A person at a real terminal (a pty): what they see, and what their keys do."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pty
import re
import termios
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from bridle.approvals import (
    AcceptElicitation,
    Approval,
    ApprovalError,
    ApprovalRequest,
    Approvals,
    Approve,
    Person,
    Reject,
    open_approvals,
)
from bridle.approvals.editing import Editor, edited_choice
from bridle.approvals.terminal import Terminal
from bridle.journal import memory_journal
from bridle.policy import parse_rule

ME = Person("me", "terminal")
LIMIT = 20.0


def check(rule: str) -> None:
    parse_rule(rule, "allow")


class Sitting:
    """A terminal, its service, and who sits before it."""

    def __init__(self, approvals: Approvals) -> None:
        self.approvals = approvals
        self.master, self.slave = pty.openpty()
        os.set_blocking(self.master, False)
        self.screen = os.fdopen(os.dup(self.slave), "w")
        self.edits: list[str] = []
        self.edited = ""
        self.editor: Editor = self._edit
        self._seen = ""
        self._task: asyncio.Task[None] | None = None

    def sit_down(self) -> None:
        terminal = Terminal(
            self.approvals, ME, keys=self.slave, screen=self.screen, editor=self._run_editor
        )
        self._task = asyncio.ensure_future(terminal.attend())

    async def _run_editor(self, text: str, suffix: str) -> str:
        return await self.editor(text, suffix)

    async def _edit(self, text: str, _: str) -> str:
        self.edits.append(text)
        return self.edited

    async def sees(self, text: str) -> str:
        """Wait until it is on the screen; all that came since the last time, up to it."""
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        loop.add_reader(self.master, ready.set)
        try:
            async with asyncio.timeout(LIMIT):
                while text not in self._seen:
                    await ready.wait()
                    ready.clear()
                    with contextlib.suppress(BlockingIOError):
                        self._seen += os.read(self.master, 65536).decode()
        except TimeoutError:
            raise AssertionError(f"never saw {text!r}, only {self._seen!r}") from None
        finally:
            loop.remove_reader(self.master)
        end = self._seen.index(text) + len(text)
        seen, self._seen = self._seen[:end], self._seen[end:]
        return seen

    def types(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    async def asks(self, tool: str, given: dict[str, Any], **more: Any) -> Approval:
        kind = more.pop("kind", "tool")
        request = ApprovalRequest(
            session="s", launch="l", kind=kind, tool=tool, input=given, tool_use_id=tool, **more
        )
        return await self.approvals.open(request)

    async def ended(self, approval: Approval) -> Approval:
        return await asyncio.wait_for(self.approvals.wait(approval.id), LIMIT)

    async def close(self) -> None:
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self.screen.close()
        os.close(self.master)
        os.close(self.slave)


@pytest_asyncio.fixture
async def sitting() -> AsyncIterator[Sitting]:
    async with (
        memory_journal() as journal,
        open_approvals(journal, check=check) as approvals,
    ):
        sitting = Sitting(approvals)
        sitting.sit_down()
        yield sitting
        await sitting.close()


async def test_a_command_is_shown_and_y_lets_it_run(sitting: Sitting) -> None:
    approval = await sitting.asks("Bash", {"command": "npm test"}, reason="no rule allows it")
    seen = await sitting.sees("[a]lways")
    assert "$ npm test" in seen
    assert "no rule allows it" in seen
    sitting.types("y")
    ended = await sitting.ended(approval)
    assert ended.status == "allowed"
    assert ended.decision
    assert (ended.decision.by, ended.decision.shown) == (ME, approval.digest)


async def test_n_asks_for_the_reason_and_says_no(sitting: Sitting) -> None:
    approval = await sitting.asks("Bash", {"command": "npm publish"})
    await sitting.sees("[a]lways")
    sitting.types("n")
    await sitting.sees("Why?")
    sitting.types("not on fridaz\x7fy\n")
    ended = await sitting.ended(approval)
    assert ended.decision
    assert ended.decision.choice == Reject("not on friday")


async def test_i_says_no_and_ends_the_turn(sitting: Sitting) -> None:
    approval = await sitting.asks("Bash", {"command": "npm publish"})
    await sitting.sees("[a]lways")
    sitting.types("i")
    await sitting.sees("Why?")
    sitting.types("\n")
    ended = await sitting.ended(approval)
    assert ended.decision
    assert ended.decision.choice == Reject("", interrupt=True)


async def test_an_edit_is_shown_as_a_diff(sitting: Sitting) -> None:
    given = {"file_path": "/app/a.py", "old_string": "x = 1\n", "new_string": "x = 2\n"}
    await sitting.asks("Edit", given)
    seen = await sitting.sees("[a]lways")
    assert "-x = 1" in seen
    assert "+x = 2" in seen


async def test_a_write_is_shown_against_what_the_file_holds(
    sitting: Sitting, tmp_path: Path
) -> None:
    file = tmp_path / "a.txt"
    file.write_text("kept\nold\n")
    await sitting.asks("Write", {"file_path": str(file), "content": "kept\nnew\n"})
    seen = await sitting.sees("[a]lways")
    assert "-old" in seen
    assert "+new" in seen
    assert "-kept" not in seen


async def test_always_shows_the_exact_rule_and_remembers_it(sitting: Sitting) -> None:
    approval = await sitting.asks(
        "Bash",
        {"command": "npm test"},
        folder="/app",
        suggestions=("Bash(npm test)", "Bash(npm test:*)"),
    )
    await sitting.sees("[a]lways")
    sitting.types("a")
    assert "2) Bash(npm test:*)" in await sitting.sees("Which rule?")
    sitting.types("1\n")
    await sitting.sees(
        "Add Bash(npm test) for this [s]ession, always in [f] /app, or [e]verywhere?"
    )
    sitting.types("f")
    assert (await sitting.ended(approval)).status == "allowed"
    (rule,) = await sitting.approvals.remembered.always()
    assert (rule.rule, rule.folder) == ("Bash(npm test)", "/app")


async def test_a_wrong_rule_is_refused_and_asked_again(sitting: Sitting) -> None:
    approval = await sitting.asks("Bash", {"command": "npm test"}, suggestions=())
    await sitting.sees("[a]lways")
    sitting.types("a")
    await sitting.sees("Which rule?")
    sitting.types("bash(npm)\n")
    await sitting.sees("or [e]verywhere?")
    sitting.types("s")
    assert "the tool is called Bash" in await sitting.sees("[a]lways  [e]dit")
    sitting.types("y")
    assert (await sitting.ended(approval)).status == "allowed"


async def test_e_edits_the_command_and_asks_before_it_runs(sitting: Sitting) -> None:
    approval = await sitting.asks("Bash", {"command": "rm -rf build", "description": "clean"})
    await sitting.sees("[a]lways")
    sitting.edited = "rm -rf build/tmp\n"
    sitting.types("e")
    await sitting.sees("Let it run as it is now?")
    sitting.types("y")
    ended = await sitting.ended(approval)
    assert sitting.edits == ["rm -rf build\n"]
    assert ended.decision
    assert ended.decision.choice == Approve({"command": "rm -rf build/tmp", "description": "clean"})


@pytest.mark.parametrize(
    ("edited", "choice"),
    [
        (
            '{"url": "https://example.com/a", "prompt": ""}',
            {"url": "https://example.com/a", "prompt": ""},
        ),
        ('{"url": "https://example.com"}', None),
        ('["https://example.com"]', None),
        ("{}", {}),
    ],
)
async def test_an_input_is_edited_as_json(edited: str, choice: dict[str, Any] | None) -> None:
    approval = Approval(
        id="a", launch="l", session="s", created=0.0, kind="tool", tool="WebFetch",
        input={"url": "https://example.com"}, digest="",
    )  # fmt: skip
    given: list[tuple[str, str]] = []

    async def edit(text: str, suffix: str) -> str:
        given.append((text, suffix))
        return edited

    found = await edited_choice(approval, edit)
    assert found == (None if choice is None else Approve(input=choice))
    assert given == [('{\n  "url": "https://example.com"\n}\n', ".json")]


async def test_an_input_that_was_edited_into_no_json_is_told(sitting: Sitting) -> None:
    approval = await sitting.asks("WebFetch", {"url": "https://example.com"})
    await sitting.sees("[a]lways")
    sitting.edited = "{ this is none"
    sitting.types("e")
    await sitting.sees("it can't be used")
    await sitting.sees("[a]lways")
    sitting.types("n")
    await sitting.sees("Why?")
    sitting.types("\n")
    assert (await sitting.ended(approval)).status == "denied"


async def test_a_plan_is_shown_as_text_and_its_mode_is_chosen(sitting: Sitting) -> None:
    approval = await sitting.asks("ExitPlanMode", {"plan": "1. look\n2. leap"}, kind="plan")
    assert "2. leap" in await sitting.sees("[y]es  [n]o  [e]dit")
    sitting.types("y")
    await sitting.sees("How shall it go on?")
    sitting.types("2")
    ended = await sitting.ended(approval)
    assert ended.decision
    assert getattr(ended.decision.choice, "mode", None) == "acceptEdits"


async def test_a_plan_may_be_edited(sitting: Sitting) -> None:
    approval = await sitting.asks("ExitPlanMode", {"plan": "1. leap"}, kind="plan")
    await sitting.sees("[y]es  [n]o  [e]dit")
    sitting.edited = "1. look\n2. leap\n"
    sitting.types("e")
    await sitting.sees("How shall it go on?")
    sitting.types("1")
    ended = await sitting.ended(approval)
    assert ended.decision
    assert getattr(ended.decision.choice, "plan", None) == "1. look\n2. leap"


async def test_questions_are_answered_by_number_or_in_words(sitting: Sitting) -> None:
    questions = [
        {"question": "Which colour?", "options": [{"label": "Blue"}, {"label": "Red"}]},
        {"question": "Which size?", "options": [{"label": "Small"}]},
    ]
    approval = await sitting.asks("AskUserQuestion", {"questions": questions}, kind="question")
    assert "2) Red" in await sitting.sees("[y] answer")
    sitting.types("y")
    await sitting.sees("Which colour?")
    sitting.types("2\n")
    await sitting.sees("Which size?")
    sitting.types("enormous\n")
    ended = await sitting.ended(approval)
    assert ended.decision
    answers = {"Which colour?": "Red", "Which size?": "enormous"}
    assert getattr(ended.decision.choice, "answers", None) == answers


async def test_a_form_is_filled_field_by_field_in_its_own_types(sitting: Sitting) -> None:
    fields = {
        "name": {"type": "string", "description": "Who you are", "title": "Name"},
        "age": {"type": "integer", "title": "Age"},
        "height": {"type": "number"},
        "agrees": {"type": "boolean"},
        "refuses": {"type": "boolean"},
        "weight": {"type": "number"},
        "nothing": {"type": "string"},
    }
    given = {"message": "Some facts, please", "requested_schema": {"properties": fields}}
    approval = await sitting.asks("Elicitation", given, kind="elicitation")
    assert "Some facts, please" in await sitting.sees("[n]o")
    sitting.types("y")
    for prompt, words in (
        ("name Who you are: ", "Ada"),
        ("age Age: ", "36"),
        ("height: ", "1.7"),
        ("agrees: ", "Yes"),
        ("refuses: ", "no"),
        ("weight: ", "enough"),
        ("nothing: ", ""),
    ):
        await sitting.sees(prompt)
        sitting.types(f"{words}\n")
    ended = await sitting.ended(approval)
    assert ended.decision
    content = {"name": "Ada", "age": 36, "height": 1.7, "agrees": True, "refuses": False,
               "weight": "enough"}  # fmt: skip
    assert ended.decision.choice == AcceptElicitation(content)


async def test_an_editor_has_the_terminal_to_itself_while_it_runs(
    sitting: Sitting,
) -> None:
    modes: list[int] = []
    edit = sitting._edit

    def mode() -> int:
        lines: int = termios.tcgetattr(sitting.slave)[3]
        return lines

    async def look(text: str, suffix: str) -> str:
        modes.append(mode())
        return await edit(text, suffix)

    sitting.editor = look
    approval = await sitting.asks("Bash", {"command": "ls"})
    await sitting.sees("[a]lways")
    taken = mode()
    sitting.edited = "ls\n"
    sitting.types("e")
    await sitting.sees("nothing was changed")
    await sitting.sees("[a]lways")
    assert mode() == taken
    sitting.edited = "ls -a\n"
    sitting.types("e")
    await sitting.sees("Let it run as it is now?")
    sitting.types("n")
    await sitting.sees("[a]lways")
    sitting.types("n")
    await sitting.sees("Why?")
    sitting.types("\n")
    assert (await sitting.ended(approval)).status == "denied"
    assert not taken & (termios.ICANON | termios.ECHO)
    assert modes == [taken | termios.ICANON | termios.ECHO] * 2


async def test_what_was_decided_elsewhere_leaves_the_screen(sitting: Sitting) -> None:
    approval = await sitting.asks("Bash", {"command": "npm test"})
    await sitting.sees("[a]lways")
    await sitting.approvals.decide(approval.id, Reject("no"), by=Person("ada", "web"))
    await sitting.sees("denied by ada, elsewhere")
    second = await sitting.asks("WebFetch", {"url": "https://example.com"})
    await sitting.sees("[a]lways")
    sitting.types("y")
    assert (await sitting.ended(second)).status == "allowed"


async def test_all_that_wait_already_are_asked_in_turn() -> None:
    async with memory_journal() as journal, open_approvals(journal, check=check) as approvals:
        sitting = Sitting(approvals)
        asked = [await sitting.asks("Bash", {"command": f"make {name}"}) for name in "abc"]
        sitting.sit_down()
        for approval, name in zip(asked, "abc", strict=True):
            await sitting.sees(f"$ make {name}")
            await sitting.sees("[a]lways")
            sitting.types("y")
            assert (await sitting.ended(approval)).status == "allowed"
        await sitting.close()


async def test_keys_typed_before_the_question_do_not_answer_it(sitting: Sitting) -> None:
    sitting.types("yyyy")
    approval = await sitting.asks("Bash", {"command": "npm test"})
    await sitting.sees("[a]lways")
    sitting.types("?")
    await sitting.sees("this once")
    assert (await sitting.approvals.get(approval.id)).status == "pending"


async def test_what_the_agent_wrote_can_not_draw_on_the_screen(sitting: Sitting) -> None:
    hidden = "echo ok\x1b[2K\x1b[1A\u202ehidden"
    await sitting.asks("Bash", {"command": hidden})
    seen = await sitting.sees("[a]lways")
    assert "\\u001b[2K" in seen
    assert "\\u202e" in seen
    assert "\x1b[2K" not in seen


async def test_what_is_guarded_says_so(sitting: Sitting) -> None:
    await sitting.asks("Bash", {"command": "x"}, guard="it reaches Bridle itself")
    assert "Only a person may decide this" in await sitting.sees("[a]lways")


async def test_what_is_long_is_cut_and_v_shows_all(sitting: Sitting) -> None:
    command = "\n".join(f"echo {n}" for n in range(200))
    approval = await sitting.asks("Bash", {"command": command})
    assert "echo 199" not in await sitting.sees("press v to see all")
    await sitting.sees("[a]lways")
    for key in "yYae":
        sitting.types(key)
        await sitting.sees("press v first")
    assert (await sitting.approvals.get(approval.id)).status == "pending"
    sitting.types("v")
    await sitting.sees("echo 199")
    await sitting.sees("[a]lways")
    sitting.types("y")
    assert (await sitting.ended(approval)).status == "allowed"


async def test_what_is_left_for_later_stays_pending(sitting: Sitting) -> None:
    approval = await sitting.asks("Bash", {"command": "npm test"})
    await sitting.sees("[a]lways")
    sitting.types("l")
    await sitting.sees("press any key to see it again")
    assert (await sitting.approvals.get(approval.id)).status == "pending"
    second = await sitting.asks("WebFetch", {"url": "https://example.com"})
    await sitting.sees("[a]lways")
    sitting.types("y")
    assert (await sitting.ended(second)).status == "allowed"
    await sitting.sees("press any key to see it again")
    sitting.types(" ")
    await sitting.sees("$ npm test")
    await sitting.sees("[a]lways")
    sitting.types("y")
    assert (await sitting.ended(approval)).status == "allowed"


async def test_what_was_put_off_and_decided_elsewhere_is_put_off_no_more(sitting: Sitting) -> None:
    first = await sitting.asks("Bash", {"command": "npm test"})
    await sitting.sees("[a]lways")
    sitting.types("l")
    await sitting.sees("1 put off")
    await sitting.asks("WebFetch", {"url": "https://example.com"})
    await sitting.sees("[a]lways")
    sitting.types("l")
    await sitting.sees("2 put off")
    await sitting.approvals.decide(first.id, Approve(), by=Person("ann", "web"))
    await sitting.sees("1 put off")


@pytest.mark.parametrize("end", ["\x04"])
async def test_the_end_of_the_input_ends_the_attending(sitting: Sitting, end: str) -> None:
    await sitting.asks("Bash", {"command": "npm test"})
    await sitting.sees("[a]lways")
    sitting.types(end)
    assert sitting._task
    await asyncio.wait_for(sitting._task, LIMIT)


@pytest.mark.parametrize(
    ("tool", "kind", "given"),
    [
        ("AskUserQuestion", "question", {"questions": ["x"]}),
        ("AskUserQuestion", "question", {"questions": 5}),
        ("AskUserQuestion", "question", {"questions": [{"question": "q", "options": 5}]}),
        ("MultiEdit", "tool", {"file_path": "/x", "edits": 5}),
        ("Edit", "tool", {"file_path": ["/x"], "old_string": 5, "new_string": {}}),
        ("Write", "tool", {"file_path": "/dev/zero", "content": []}),
        ("ExitPlanMode", "plan", {"plan": ["no text"]}),
    ],
)
async def test_an_input_of_an_odd_form_does_not_end_the_attending(
    sitting: Sitting, tool: str, kind: str, given: dict[str, Any]
) -> None:
    approval = await sitting.asks(tool, given, kind=kind)
    await sitting.sees("[n]o")
    sitting.types("n")
    await sitting.sees("Why?")
    sitting.types("\n")
    assert (await sitting.ended(approval)).status == "denied"


async def test_a_pipe_where_a_file_is_to_be_written_blocks_nobody(
    sitting: Sitting, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe")
    await sitting.asks("Write", {"file_path": str(tmp_path / "pipe"), "content": "x"})
    assert "+x" in await sitting.sees("[a]lways")


async def test_a_reason_can_not_look_like_the_call_itself(sitting: Sitting) -> None:
    more = {"reason": "fine\n\n$ ls", "notes": ("ok\n$ ls",)}
    await sitting.asks("Bash", {"command": "rm x"}, **more)
    seen = await sitting.sees("[a]lways")
    assert [line for line in _plain(seen).splitlines() if line.startswith("$")] == ["$ rm x"]
    assert "fine\\n\\n$ ls" in seen


def _plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9]*m", "", text)


async def test_the_attending_ends_with_the_service(sitting: Sitting) -> None:
    await sitting.approvals.aclose()
    assert sitting._task
    await asyncio.wait_for(sitting._task, LIMIT)


async def test_where_no_terminal_is_nobody_can_be_asked(sitting: Sitting) -> None:
    reading, writing = os.pipe()
    try:
        with pytest.raises(ApprovalError, match="no terminal"):
            Terminal(sitting.approvals, ME, keys=reading)
    finally:
        os.close(reading)
        os.close(writing)
