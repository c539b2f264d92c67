"""The reminder to commit: real repositories, and it never blocks twice."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import bridle
from bridle.protocol.hook_outputs import HookOutput
from bridle.protocol.hooks import Stop
from bridle.session.reminder import MAX_SHOWN


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "app"
    folder.mkdir()
    git(folder, "init")
    (folder / "a.txt").write_text("a")
    git(folder, "add", ".")
    git(folder, "commit", "-m", "first")
    return folder


def stop(cwd: Path, *, active: bool = False) -> Stop:
    return Stop(session_id="s", cwd=str(cwd), stop_hook_active=active)


async def test_a_clean_repository_lets_the_agent_stop(repo: Path) -> None:
    assert await bridle.remind_to_commit()(stop(repo)) is None


async def test_changes_block_the_first_stop_and_say_what_is_changed(repo: Path) -> None:
    (repo / "b.txt").write_text("b")
    (repo / "a.txt").write_text("changed")
    told = await bridle.remind_to_commit()(stop(repo))
    assert isinstance(told, HookOutput)
    assert told.decision == "block"
    assert "a.txt" in str(told.reason)
    assert "b.txt" in str(told.reason)


async def test_the_second_stop_is_never_blocked(repo: Path) -> None:
    (repo / "b.txt").write_text("b")
    remind = bridle.remind_to_commit()
    assert await remind(stop(repo))
    assert await remind(stop(repo, active=True)) is None
    assert await remind(stop(repo))


async def test_a_cli_that_does_not_tell_is_not_held_in_a_loop(repo: Path) -> None:
    (repo / "b.txt").write_text("b")
    remind = bridle.remind_to_commit()
    blocked = [bool(await remind(stop(repo))) for _ in range(4)]
    assert blocked == [True, False, True, False]


async def test_a_folder_of_repositories_stands_for_those_in_it(repo: Path) -> None:
    (repo / "b.txt").write_text("b")
    told = await bridle.remind_to_commit(repo.parent)(stop(Path("/")))
    assert told
    assert str(repo) in str(told.reason)


async def test_the_repository_above_the_agents_folder_counts(repo: Path) -> None:
    (repo / "sub").mkdir()
    (repo / "sub/c.txt").write_text("c")
    assert await bridle.remind_to_commit()(stop(repo / "sub"))


async def test_no_repository_is_no_reason(tmp_path: Path) -> None:
    assert await bridle.remind_to_commit()(stop(tmp_path)) is None


async def test_a_repository_that_git_can_not_read_is_told_and_blocks_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / ".git").write_text("gitdir: /nowhere")
    assert await bridle.remind_to_commit()(stop(tmp_path)) is None
    assert "no reminder to commit" in caplog.text


async def test_where_there_is_no_git_nothing_is_blocked(
    repo: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repo / "b.txt").write_text("b")
    monkeypatch.setenv("PATH", str(repo))
    assert await bridle.remind_to_commit()(stop(repo)) is None
    assert "no reminder to commit" in caplog.text


async def test_of_many_changes_the_first_are_named_and_the_others_counted(repo: Path) -> None:
    for number in range(MAX_SHOWN):
        (repo / f"{number}.txt").write_text("b")
    told = await bridle.remind_to_commit()(stop(repo))
    assert told
    assert f", {MAX_SHOWN - 1}.txt)" in str(told.reason)
    (repo / "z.txt").write_text("b")
    (repo / "zz.txt").write_text("b")
    told = await bridle.remind_to_commit()(stop(repo))
    assert told
    assert f", {MAX_SHOWN - 1}.txt and 2 more)" in str(told.reason)


async def test_each_repository_with_changes_is_named_and_no_other(repo: Path) -> None:
    for name in ("b", "c", "d"):
        (repo.parent / name).mkdir()
        git(repo.parent / name, "init")
    for name in ("b", "d"):
        (repo.parent / name / "new.txt").write_text("b")
    told = await bridle.remind_to_commit(repo.parent)(stop(repo))
    assert told
    named = [name for name in ("app", "b", "c", "d") if f"{repo.parent / name} (" in str(told)]
    assert named == ["b", "d"]


@pytest.mark.parametrize("setting", ["core.fsmonitor", "filter.x.clean"])
async def test_a_program_that_the_repository_names_is_not_run(
    repo: Path, caplog: pytest.LogCaptureFixture, setting: str
) -> None:
    """It would run as us, and not as the agent that may have named it."""
    marker = repo.parent / "ran"
    git(repo, "config", setting, f"touch {marker}; false")
    (repo / ".gitattributes").write_text("* filter=x")
    (repo / "b.txt").write_text("b")
    assert await bridle.remind_to_commit()(stop(repo)) is None
    assert not marker.exists()
    assert "git would run" in caplog.text
