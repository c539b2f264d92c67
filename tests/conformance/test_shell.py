"""The CLI's own shell and file tools do what was judged, and no more."""

from __future__ import annotations

import random
from typing import Any

import pytest

from bridle.policy import Call, Policy
from bridle.policy.paths import place
from bridle.policy.rewriting import survives_rewriting
from bridle.protocol.content import tool_results
from bridle.protocol.messages import User
from bridle.protocol.permissions import Deny
from bridle.session.ground import ground_of
from bridle.testing import Turn, tool_use
from bridle.testing.script import ToolUse
from tests.levels import tries
from tests.policy.grounds import bash, told

from .commands import command
from .lab import Lab
from .paths import lay_out, spelling
from .shells import RecordingShell, in_batches, marked, unjudged
from .talk import Judge

ALLOW = [*(f"Bash(c{digit}:*)" for digit in range(1, 10)), "Edit(/**)"]
FILES: dict[str, Any] = {
    "preset": "edits",
    "deny": ["Read(secret)", "Edit(secret)", "Read(//**/outside/**/.bashrc)"],
}
#: So many calls of one turn, and of one process.
AT_ONCE, PER_PROCESS = 25, 500
LIMIT_SECONDS = 600.0


def allowed_commands(lab: Lab, wanted: int, seed: int) -> list[str]:
    """Commands that the policy allows, each with its number in it: so many that this version keeps
    as they are, and some that it changes."""
    judge = Policy(allow=ALLOW).on(ground_of(lab.cwd, home=str(lab.home)))
    found: list[str] = []
    kept = 0
    while kept < wanted:
        text, seed = marked(command(seed), len(found)), seed + 1
        if not text or "\0" in text or told(judge.judge(bash(text))) != "allow":
            continue
        is_kept = not lab.is_old or survives_rewriting(text)
        if is_kept or seed % 10 == 0:
            found.append(text)
            kept += is_kept
    return found


@pytest.mark.timeout(7_200)
async def test_the_shell_is_given_what_was_judged(lab: Lab) -> None:
    """Random commands that the policy allows: the shell runs what was judged, or they are asked"""
    commands = allowed_commands(lab, tries(200, 2_000, 20_000), seed=0)
    shell = RecordingShell(lab.home.parent / "shell")
    asked = 0
    for batch in in_batches(commands, PER_PROCESS):
        turns = [
            Turn(*(tool_use("Bash", command=one, description="try") for one in some))
            for some in in_batches(batch, AT_ONCE)
        ]
        judge = Judge(Deny("not that"))
        policy, env = Policy(allow=ALLOW), shell.environment
        script: list[Turn | str] = [*turns, "Done."]
        async with lab.session(script, approver=judge, policy=policy, env=env) as talk:
            await talk.say("go", LIMIT_SECONDS)
        asked += len(judge.asked)
    given = shell.given()
    ran, missed = unjudged(commands, given)
    assert missed == []
    # What is asked can't miss anything.
    assert len(given) == len(commands) - asked
    assert ran > 0.9 * len(given)
    changed = sum(not survives_rewriting(one) for one in commands) if lab.is_old else 0
    # Some it asks about by itself.
    assert 0 <= asked - changed < len(commands) / 100
    if changed:
        lab.saw("some would be changed: these are asked")


def spellings(lab: Lab, tool: str, count: int) -> dict[str, tuple[str, str]]:
    """Calls by their ids: how each spells its path, and which file that is for the policy, where it
    allows them."""
    rand, found = random.Random(tool), {}
    judge = Policy(**FILES).on(ground_of(lab.cwd, home=str(lab.home)))
    outside = lab.cwd.parent / "outside"
    (lab.cwd / "link").symlink_to(outside)
    for number in range(count):
        lay_out(number, lab.cwd, outside)
        path = spelling(rand, number, lab.cwd, outside)
        if told(judge.judge(Call(tool, {"file_path": path, "content": "x"}))) == "allow":
            where = place(path, str(lab.cwd), judge.ground)
            found[f"toolu_{tool}_{number}"] = (path, where.real)
    return found


@pytest.mark.timeout(7_200)
async def test_a_file_is_read_that_was_judged(lab: Lab) -> None:
    """Random spellings of paths that the policy lets be read: what is read is what was judged"""
    judged = spellings(lab, "Read", tries(100, 500, 5_000))
    script = [
        Turn(*(ToolUse("Read", {"file_path": judged[id_][0]}, id_) for id_ in some))
        for some in in_batches(list(judged), AT_ONCE)
    ]
    # Some it asks about by itself.
    policy, judge = Policy(**FILES), Judge(Deny("not that"))
    async with lab.session([*script, "Done."], policy=policy, approver=judge) as talk:
        heard = await talk.say("go", LIMIT_SECONDS)
    results = [block for message in heard.of(User) for block in tool_results(message)]
    read = {block.tool_use_id: str(block.content) for block in results if not block.is_error}
    wrong = {id_: (*judged[id_], text) for id_, text in read.items() if judged[id_][1] not in text}
    assert wrong == {}
    assert len(read) > len(judged) / 4


@pytest.mark.timeout(7_200)
async def test_a_file_is_written_that_was_judged(lab: Lab) -> None:
    """The same for files that are written"""
    judged = spellings(lab, "Write", tries(100, 500, 5_000))
    for folder in (lab.cwd, lab.cwd.parent / "outside"):
        for path in folder.glob("d*/*"):
            path.unlink()
    script = [
        Turn(
            *(ToolUse("Write", {"file_path": judged[id_][0], "content": id_}, id_) for id_ in some)
        )
        for some in in_batches(list(judged), AT_ONCE)
    ]
    # Some it asks about by itself.
    policy, judge = Policy(**FILES), Judge(Deny("not that"))
    async with lab.session([*script, "Done."], policy=policy, approver=judge) as talk:
        await talk.say("go", LIMIT_SECONDS)
    files = [path for path in lab.cwd.parent.rglob("*") if path.is_file()]
    texts = {str(path.resolve()): path.read_text(errors="replace") for path in files}
    written = {path: text for path, text in texts.items() if text in judged}
    wrong = {path: judged[text] for path, text in written.items() if judged[text][1] != path}
    assert wrong == {}
    assert len(written) > len(judged) / 2
