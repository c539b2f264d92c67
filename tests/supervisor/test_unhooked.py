"""What runs without a hook, under a supervisor: git of a hostile repository, slash commands."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from bridle.approvals.trust import TrustedFolders
from bridle.errors import InvalidRequest
from bridle.policy import Policy
from bridle.policy.verdicts import Allowed, Asked, Call
from bridle.session.folder import NO_GIT, survey_of
from bridle.supervisor import Supervisor

from .homes import ME, WORKS, Home, until


def git(home: Home, *words: str) -> None:
    subprocess.run(["git", *words], cwd=home.work, check=True)


def hostile(home: Home) -> None:
    git(home, "init", "-q")
    git(home, "config", "core.fsmonitor", "./evil")


async def trust(supervisor: Supervisor, home: Home) -> None:
    found = survey_of(home.work)
    await TrustedFolders(supervisor.journal).trust(found.folder, found.digest, [], ME)


def status(supervisor: Supervisor, session: str) -> Any:
    policy = supervisor.live(session).policy
    assert policy
    return policy.judge(Call("Bash", {"command": "git status"}))


async def started(supervisor: Supervisor, home: Home, name: str) -> str:
    """What its CLI has as GIT_DIR."""
    record = await home.start(supervisor, *WORKS, name=name, policy="edits")
    await until(supervisor, name, "running")
    record = supervisor.get(record.id)
    assert record.launch
    with open(f"/proc/{record.launch.pid}/environ", "rb") as file:  # noqa: ASYNC230, PTH123
        variables = dict(line.partition(b"=")[::2] for line in file.read().split(b"\0"))
    return variables.get(b"GIT_DIR", b"").decode()


async def test_git_is_switched_off_and_asked_about_until_the_folder_is_trusted(home: Home) -> None:
    hostile(home)
    async with home.open(keep=True) as supervisor:
        assert await started(supervisor, home, "before") == NO_GIT
        assert isinstance(found := status(supervisor, "before"), Asked)
        assert found.guard
        await trust(supervisor, home)
        assert await started(supervisor, home, "after") == ""
        assert isinstance(status(supervisor, "after"), Allowed)
    async with home.open() as supervisor:
        assert isinstance(status(supervisor, "after"), Allowed)
        git(home, "config", "diff.external", "./more")
        assert isinstance(found := status(supervisor, "after"), Asked)
        assert "diff.external" in found.guard


async def test_a_repository_that_has_changed_while_nobody_looked_is_trusted_no_more(
    home: Home,
) -> None:
    hostile(home)
    async with home.open(keep=True) as supervisor:
        await trust(supervisor, home)
        await started(supervisor, home, "a")
    git(home, "config", "diff.external", "./more")
    async with home.open() as supervisor:
        assert isinstance(status(supervisor, "a"), Asked)


async def test_no_slash_command_is_taken_that_would_run_what_a_rule_forbids(home: Home) -> None:
    command = home.work / ".claude/commands/x.md"
    command.parent.mkdir(parents=True)
    command.write_text("So: !`rm a`\n")
    policy = Policy("edits", deny=["Bash(rm:*)"])
    async with home.open() as supervisor:
        with pytest.raises(InvalidRequest, match="by itself"):
            await home.start(supervisor, *WORKS, name="a", policy=policy, prompt="/x")
        assert supervisor.list() == []
        await home.start(supervisor, *WORKS, name="a", policy=policy)
        await until(supervisor, "a", "running")
        with pytest.raises(InvalidRequest, match="by itself"):
            await supervisor.send("a", "/x")
        await supervisor.send("a", "/x", is_verbatim=True)
        await supervisor.stop("a")
        with pytest.raises(InvalidRequest, match="by itself"):
            await supervisor.start("a", prompt="/x")
