"""What the CLI runs without a hook: git of hostile repositories, commands in skills."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import bridle
from bridle.errors import InvalidRequest
from bridle.process.spec import LaunchOptions
from bridle.protocol.permissions import Deny
from bridle.testing import Turn, tool_use

from .lab import Lab
from .talk import Judge

STATUS = Turn(tool_use("Bash", command="git status", description="look"))


def hostile(lab: Lab) -> Path:
    """`git status` leaves a file there."""
    ran = lab.home.parent / "ran"
    program = lab.home.parent / "program"
    program.write_text(f"#!/bin/sh\ntouch {ran}\n")
    program.chmod(0o700)

    def git(*words: str) -> None:
        subprocess.run(["git", *words], cwd=lab.cwd, check=True, capture_output=True)

    git("init", "-q")
    (lab.cwd / "f").write_text("x\n")
    git("add", "f")
    git("-c", "user.name=a", "-c", "user.email=b", "commit", "-qm", "one")
    git("config", "core.fsmonitor", str(program))
    return ran


@pytest.mark.parametrize("policy", ["read-only", "edits"])
async def test_untrusted_repository(lab: Lab, policy: str) -> None:
    """A repository whose settings have git run a program: it is asked about, and does not run"""
    ran = hostile(lab)
    judge = Judge(Deny("not that"))
    async with lab.session([STATUS, "Pity."], approver=judge, policy=policy) as talk:
        heard = await talk.say("go")
        output, is_error = heard.last_output()
        assert is_error
        assert ("not that" in output) == bool(judge.asked)
    assert not ran.exists()


async def test_untrusted_repository_allowed(lab: Lab) -> None:
    """The same, and a person says yes: git is switched off there, and says why"""
    ran = hostile(lab)
    async with lab.session([STATUS, "Done."], approver=Judge(), policy="edits") as talk:
        heard = await talk.say("go")
        assert "bridle trust" in heard.last_output()[0]
    assert not ran.exists()


async def test_trusted_repository(lab: Lab) -> None:
    """The same repository, trusted: git works there, unasked"""
    ran = hostile(lab)
    judge, trust = Judge(Deny("not that")), bridle.survey(lab.cwd)
    script: list[Turn | str] = [STATUS, "Done."]
    async with lab.session(script, approver=judge, policy="edits", trust=trust) as talk:
        heard = await talk.say("go")
        assert "On branch" in heard.last_output()[0]
    assert judge.asked == []
    assert ran.exists()


@pytest.mark.parametrize("command", ["touch t.txt", "echo fine"])
async def test_commands_of_a_skill(lab: Lab, command: str) -> None:
    """A skill runs commands by itself, in bypass mode: only such that the policy allows"""
    skill = lab.config_dir / "skills/x/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text(f"---\ndescription: x\n---\nIt says: !`{command}`\n")
    script: list[Turn | str] = [Turn(tool_use("Skill", skill="x")), "Done."]
    policy = bridle.Policy("autonomous", deny=["Bash(touch:*)"])
    launch: LaunchOptions = {"permission_mode": "bypassPermissions", "env": {"IS_SANDBOX": "1"}}
    async with lab.session(script, policy=policy, **launch) as talk:
        heard = await talk.say("go")
        output, is_error = heard.last_output()
        assert is_error == command.startswith("touch")
        assert ("Bridle denied this" in output) == is_error
        if not is_error:
            assert "It says: fine" in str(talk.model.requests[-1].messages)
    assert not lab.exists("t.txt")


async def test_a_slash_command_that_a_rule_forbids(lab: Lab) -> None:
    """A person's slash command that would run what a rule forbids is not sent"""
    command = lab.config_dir / "commands/x.md"
    command.parent.mkdir(parents=True)
    command.write_text("So: !`touch t.txt`\n")
    policy = bridle.Policy("autonomous", deny=["Bash(touch:*)"])
    async with lab.session(["Done."], policy=policy) as talk:
        with pytest.raises(InvalidRequest, match="by itself"):
            await talk.session.send("/x")
        assert (await talk.say("hello")).result.result == "Done."
    assert not lab.exists("t.txt")
