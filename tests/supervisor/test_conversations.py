"""A session that goes on with a conversation which Claude Code has stored by itself."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from bridle.approvals import Agent
from bridle.errors import InvalidLaunch
from bridle.supervisor import Plain
from bridle.testing import FakeCli

from .homes import LIMIT, ME, TURN, Home, until

ID = "0c1f8e6a-2f0b-4f5e-9d0e-6f3b7a1c2d3e"


def stored(config: Path, folder: Path, id_: str = ID) -> None:
    """A conversation, as Claude Code keeps it."""
    place = config / "projects" / re.sub(r"[^A-Za-z0-9]", "-", str(folder.resolve()))
    place.mkdir(parents=True, exist_ok=True)
    said = {
        "type": "user",
        "uuid": "11111111-1111-4111-8111-111111111111",
        "parentUuid": None,
        "cwd": str(folder),
        "timestamp": "2026-01-01T00:00:00Z",
        "message": {"role": "user", "content": "Greet me."},
    }
    (place / f"{id_}.jsonl").write_text(json.dumps(said) + "\n")


def resumed(cli: FakeCli) -> list[str]:
    """What each launch was told to go on with."""
    launches = [entry["argv"] for entry in cli.report() if "argv" in entry]
    found = (next((w for w in words if w.startswith("--resume=")), "") for words in launches)
    return [word.removeprefix("--resume=") for word in found]


@pytest.mark.parametrize("is_started", [True, False])
async def test_it_begins_with_the_conversation(
    home: Home, tmp_path: Path, is_started: bool
) -> None:
    stored(tmp_path / "claude", home.work)
    cli = home.cli(*TURN)
    env = {"CLAUDE_CONFIG_DIR": Plain(str(tmp_path / "claude"))}
    async with home.open() as supervisor:
        made = await supervisor.create(
            cwd=home.work, by=ME, command=cli.command, env=env, resume=ID, start=is_started,
            prompt="go on",
        )  # fmt: skip
        assert made.claude_session_id == ID
        if not is_started:
            await supervisor.start(made.id)
        await supervisor.wait(made.id, lambda record: record.turns == 1, LIMIT)
        await supervisor.stop(made.id)
        # A new conversation is one; to resume goes on with what the agent said it was.
        await supervisor.start(made.id, prompt="anew")
        await until(supervisor, made.id, "idle")
    assert resumed(cli) == [ID, ""]


async def test_one_that_is_not_there_is_refused(home: Home, tmp_path: Path) -> None:
    stored(tmp_path / "claude", home.work)
    stored(tmp_path / "claude", tmp_path, "of-another-folder")
    env = {"CLAUDE_CONFIG_DIR": Plain(str(tmp_path / "claude"))}
    async with home.open() as supervisor:
        for wrong in ("gone", "of-another-folder", "", ID[:8], f"../{ID}"):
            with pytest.raises(InvalidLaunch, match="bridle import"):
                await supervisor.create(cwd=home.work, by=ME, env=env, resume=wrong)
        assert supervisor.list() == []


async def test_two_do_not_go_on_with_the_same_one(home: Home, tmp_path: Path) -> None:
    stored(tmp_path / "claude", home.work)
    env = {"CLAUDE_CONFIG_DIR": Plain(str(tmp_path / "claude"))}
    async with home.open() as supervisor:
        await supervisor.create(cwd=home.work, by=ME, env=env, resume=ID, start=False, name="one")
        with pytest.raises(InvalidLaunch, match=r"session one goes on with .*`bridle fork`"):
            await supervisor.create(cwd=home.work, by=ME, env=env, resume=ID, start=False)


async def test_an_agent_goes_on_with_none(home: Home, tmp_path: Path) -> None:
    stored(tmp_path / "claude", home.work)
    env = {"CLAUDE_CONFIG_DIR": Plain(str(tmp_path / "claude"))}
    async with home.open() as supervisor:
        above = await home.start(supervisor, *TURN, prompt=None, loopback=True, env=env)
        await until(supervisor, above.id, "idle")
        with pytest.raises(InvalidLaunch, match="not for an agent"):
            await supervisor.create(cwd=home.work, by=Agent(above.id), resume=ID)
        assert len(supervisor.list()) == 1
