"""Agents that run agents, as a user has them: real CLIs on both ends, a server that is killed."""

from __future__ import annotations

import json
import shlex
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from bridle.testing import (
    Conversation,
    Hold,
    InstalledCli,
    ModelRequest,
    ScriptedModel,
    Turn,
    says,
    tool_use,
)

from .user import User, followers

POLICY = """\
preset = "ask"

[[delegate]]
rules = ["Bash(touch:*)"]
"""

MakeModel = Callable[..., Awaitable[ScriptedModel]]
MakeUser = Callable[[dict[str, str]], User]


@pytest_asyncio.fixture
async def users(tmp_path: Path) -> AsyncIterator[MakeUser]:
    made: list[User] = []

    def make(env: dict[str, str]) -> User:
        made.append(User(tmp_path, env))
        return made[-1]

    yield make
    for user in made:
        await user.aclose()


def bridle(tool: str, **arguments: Any) -> Turn:
    """The model calls one of our tools."""
    return Turn(tool_use(f"mcp__bridle__{tool}", arguments))


def given(sent: ModelRequest) -> dict[str, Any]:
    """What the last of our tools gave back; nothing that failed."""
    result = json.loads(sent.last_result)
    assert isinstance(result, dict)
    assert result["type"] != "error", result
    return result


class Ids:
    """What a scripted parent remembers of what it was told."""

    def __init__(self) -> None:
        self.sessions: list[str] = []
        self.results: list[dict[str, Any]] = []

    def keep(self, sent: ModelRequest) -> dict[str, Any]:
        result = given(sent)
        self.results.append(result)
        if result["type"] == "created":
            self.sessions.append(result["id"])
        return result


def bash(command: str) -> Turn:
    return Turn(tool_use("Bash", command=command, description="as I was told"))


def parent_of_one(ids: Ids, *, hold: Hold | None = None) -> list[Any]:
    """Creates a child, gives it work, sees what it asks, says yes, and takes its result."""

    def chat(sent: ModelRequest) -> Turn:
        ids.keep(sent)
        turn = bridle("claudecode_chat_async", session_id=ids.sessions[0], prompt="[child] do it")
        return Turn(hold, *turn.pieces) if hold else turn

    def poll(sent: ModelRequest) -> Turn:
        assert ids.keep(sent)["type"] == "started"
        return bridle("claudecode_poll", session_id=ids.sessions[0], until="approval")

    def respond(sent: ModelRequest) -> Turn:
        polled = ids.keep(sent)
        assert polled["status"] == "awaiting_permission"
        [asked] = polled["pending_approvals"]
        assert asked["tool_name"] == "Bash"
        assert asked["input"]["command"] == "touch x.txt"
        return bridle("loopback_respond", approval_id=asked["id"], approve=True)

    def wait(sent: ModelRequest) -> Turn:
        assert ids.keep(sent)["type"] == "ok"
        return bridle("claudecode_poll", session_id=ids.sessions[0], until="turn_end")

    def look(sent: ModelRequest) -> Turn:
        ids.keep(sent)
        return bridle("claudecode_result", session_id=ids.sessions[0])

    def say(sent: ModelRequest) -> str:
        ids.keep(sent)
        return "The child is done."

    return [chat, poll, respond, wait, look, say]


async def started(user: User, tmp_path: Path) -> None:
    policy = tmp_path / "parent.toml"
    policy.write_text(POLICY)
    await user.json(
        *("start", "[parent] go", "--cwd", str(user.work), "--name", "parent"),
        *("--policy", str(policy), "--loopback"),
    )


def create(folder: Path, name: str = "child") -> Turn:
    """A child that works where its parent does."""
    return bridle("claudecode_create", name=name, working_dir=str(folder / "work"))


@pytest.mark.slow
async def test_a_real_parent_runs_a_real_child_and_the_server_is_killed_in_between(
    users: MakeUser, real_cli: InstalledCli, scripted_model: MakeModel, tmp_path: Path
) -> None:
    ids, hold = Ids(), Hold()
    turns = [create(tmp_path), *parent_of_one(ids, hold=hold)]
    parent = Conversation(turns, when=says("[parent]"))
    child = Conversation([bash("touch x.txt"), "I did it."], when=says("[child]"))
    model = await scripted_model(parent, child)
    env = model.environment(tmp_path)
    user = users({**env, "BRIDLE_CLAUDE": shlex.join(real_cli.command)})
    await user.up()
    await started(user, tmp_path)
    async with followers(user, "parent", 1) as (follower,):
        # At the very moment at which the child is born: its parent may not know of it yet.
        await follower.heard("session.child_created")
        await user.kill_server()
        await user.up()
        await hold.reached.wait()
        hold.release()
        await follower.heard("session.state", was="running", now="idle")
    assert (user.work / "x.txt").exists()
    names = [one["name"] for one in await user.json("ps", "--all")]
    assert sorted(names) == ["child", "parent"]
    result = ids.results[-1]
    assert result["status"] == "complete"
    assert result["result"] == "I did it."
    [approval] = await user.json("approvals", "--all")
    assert approval["ending"]["by"] == {"type": "agent", "session": approval["lineage"][-1]}
    assert approval["ending"]["rule"] == "Bash(touch:*)"
    await user.run("stop", "parent")
    await user.end_server()


@pytest.mark.slow
async def test_what_a_parent_may_not_grant_reaches_a_person(
    users: MakeUser, real_cli: InstalledCli, scripted_model: MakeModel, tmp_path: Path
) -> None:
    """A grandchild asks; neither its parent nor the one above may say yes."""
    above, below = Ids(), Ids()

    def told(ids: Ids, prompt: str) -> Callable[[ModelRequest], Turn]:
        def chat(sent: ModelRequest) -> Turn:
            ids.keep(sent)
            return bridle("claudecode_chat_async", session_id=ids.sessions[0], prompt=prompt)

        return chat

    def waits(ids: Ids) -> Callable[[ModelRequest], Turn]:
        def poll(sent: ModelRequest) -> Turn:
            ids.keep(sent)
            return bridle(
                "claudecode_poll", session_id=ids.sessions[0], until="turn_end", wait_ms=60_000
            )

        return poll

    def done(ids: Ids) -> Callable[[ModelRequest], str]:
        def say(sent: ModelRequest) -> str:
            assert ids.keep(sent)["status"] == "complete"
            return "Done."

        return say

    parent = Conversation(
        [create(tmp_path), told(above, "[child] have it done"), waits(above), done(above)],
        when=says("[parent]"),
    )
    child = Conversation(
        [
            create(tmp_path, "grandchild"),
            told(below, "[grandchild] do it"),
            waits(below),
            done(below),
        ],
        when=says("[child]"),
    )
    grandchild = Conversation([bash("mkdir pushed"), "Pushed."], when=says("[grandchild]"))
    model = await scripted_model(parent, child, grandchild)
    env = model.environment(tmp_path)
    user = users({**env, "BRIDLE_CLAUDE": shlex.join(real_cli.command)})
    await user.up()
    await started(user, tmp_path)
    async with followers(user, "parent", 1) as (follower,):
        await follower.heard("session.child_created")
        approval = await user.pending()
        assert approval["input"]["command"] == "mkdir pushed"
        assert len(approval["lineage"]) == 2
        [people] = approval["steps"]
        assert people.get("to", "") == ""
        passed_over = [one["session"] for one in people["over"]]
        assert passed_over == list(reversed(approval["lineage"]))
        assert all("mkdir" in one["why"] or "may not" in one["why"] for one in people["over"])
        shown = await user.run("approvals", "show", approval["id"])
        assert "child" in shown
        await user.run("approve", approval["id"])
        await follower.heard("session.state", was="running", now="idle")
    assert (user.work / "pushed").exists()
    assert above.results[-1]["status"] == "complete"
    assert "Pushed." in json.dumps(below.results[-1]["events"])
    await user.run("stop", "parent")
    await user.end_server()


@pytest.mark.slow
async def test_one_poll_serves_two_children_at_once(
    users: MakeUser, real_cli: InstalledCli, scripted_model: MakeModel, tmp_path: Path
) -> None:
    ids = Ids()

    def both(tool: str, **arguments: Any) -> Callable[[ModelRequest], Turn]:
        def call(sent: ModelRequest) -> Turn:
            ids.keep(sent)
            return bridle(tool, session_ids=ids.sessions, **arguments)

        return call

    def chat(which: int) -> Callable[[ModelRequest], Turn]:
        def call(sent: ModelRequest) -> Turn:
            ids.keep(sent)
            prompt = f"[child {which}] do it"
            return bridle("claudecode_chat_async", session_id=ids.sessions[which], prompt=prompt)

        return call

    asked: set[str] = set()

    def respond_or_go_on(sent: ModelRequest) -> Turn | str:
        """Say yes to whoever asks; ended when both are."""
        result = ids.keep(sent)
        sessions = result.get("sessions", [])
        waiting = [one for session in sessions for one in session["pending_approvals"]]
        if waiting:
            asked.add(waiting[0]["id"])
            return bridle("loopback_respond", approval_id=waiting[0]["id"], approve=True)
        if sessions and all(session["status"] == "complete" for session in sessions):
            return "Both are done."
        return bridle("claudecode_poll", session_ids=ids.sessions, until="any")

    def second(sent: ModelRequest) -> Turn:
        ids.keep(sent)
        return create(tmp_path, "two")

    parent = Conversation(
        [create(tmp_path, "one"), second, chat(0), chat(1), both("claudecode_poll", until="any")],
        when=says("[parent]"),
        then=respond_or_go_on,
    )
    children = [
        Conversation([bash(f"touch {n}.txt"), f"I did {n}."], when=says(f"[child {n}]"))
        for n in range(2)
    ]
    model = await scripted_model(parent, *children)
    env = model.environment(tmp_path)
    user = users({**env, "BRIDLE_CLAUDE": shlex.join(real_cli.command)})
    await user.up()
    await started(user, tmp_path)
    async with followers(user, "parent", 1) as (follower,):
        await follower.heard("session.state", was="running", now="idle")
    assert [(user.work / f"{n}.txt").exists() for n in range(2)] == [True, True]
    assert len(asked) == 2
    await user.run("stop", "parent")
    await user.end_server()
