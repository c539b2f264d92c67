"""As a user: a server, an agent by the command, two who follow, `kill -9`, and an approval."""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bridle.testing import FakeCli, InstalledCli, ScriptedModel, Turn, tool_use

from .user import User, followers

COMMAND = "touch t.txt && echo hi > x.txt"

ASKS: tuple[dict[str, Any], ...] = (
    {"prompt": True},
    {"init": {}},
    {"say": "I will write it."},
    {"tool_use": {"name": "Bash", "id": "t1", "input": {"command": COMMAND}}},
    {
        "ask": {"tool_name": "Bash", "input": {"command": COMMAND}, "tool_use_id": "t1"},
        "id": "q1",
    },
    {"say": "Done."},
    {"result": "Done."},
)


@pytest.fixture
def users(tmp_path: Path) -> Iterator[Callable[[dict[str, str]], User]]:
    made: list[User] = []

    def make(env: dict[str, str]) -> User:
        made.append(User(tmp_path, env))
        return made[-1]

    yield make
    for user in made:
        user.end()


async def go_through(user: User) -> None:
    """From the first start to the end, with the server killed while the agent asks."""
    await user.up()
    started = await user.json("start", "Write it.", "--cwd", str(user.work), "--name", "writer")
    assert started["name"] == "writer"
    async with followers(user, "writer", 2) as (one, other):
        asked = await one.heard("approval.requested")
        await user.kill_server()
        assert (await user.run("ps", code=0)).count("writer") == 1  # from the home itself
        await user.up()
        [approval] = await user.json("approvals")
        assert approval["id"] == asked["id"]
        assert approval["input"]["command"] == COMMAND
        assert not (user.work / "x.txt").exists()
        await user.run("approve", approval["id"][:8])
        for follower in (one, other):
            await follower.heard("approval.outcome")
            await follower.heard("session.state", was="running", now="idle")
            assert follower.cuts >= 1
        count = min(len(one.events), len(other.events))
        assert one.events[:count] == other.events[:count]
        assert [seq for seq, *_ in one.events] == list(range(1, len(one.events) + 1))
    logs = await user.run("logs", "writer")
    assert "Write it." in logs
    assert "Done." in logs
    await user.run("stop", "writer")
    await user.run("rm", "writer")
    assert await user.json("ps", "--all") == []
    said = await user.end_server()
    assert "no agents run on" in said


@pytest.mark.slow
async def test_the_whole_way_with_a_fake_agent(
    users: Callable[[dict[str, str]], User], tmp_path: Path
) -> None:
    fake = FakeCli(ASKS, tmp_path / "fake")
    await go_through(users({"BRIDLE_CLAUDE": shlex.join(fake.command)}))
    answer = fake.answer_to("q1")
    assert answer
    assert answer["response"]["behavior"] == "allow"


@pytest.mark.slow
async def test_the_whole_way_with_the_newest_real_cli(
    users: Callable[[dict[str, str]], User],
    real_cli: InstalledCli,
    scripted_model: Callable[..., Awaitable[ScriptedModel]],
    tmp_path: Path,
) -> None:
    bash = tool_use("Bash", command=COMMAND, description="write x")
    model = await scripted_model([Turn("I will write it.", bash), "Done."])
    env = model.environment(tmp_path)
    user = users({**env, "BRIDLE_CLAUDE": shlex.join(real_cli.command)})
    await go_through(user)
    assert (user.work / "x.txt").read_text() == "hi\n"
