"""A repository that has git run programs: nobody does, neither the agent nor the CLI by itself."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import bridle
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
