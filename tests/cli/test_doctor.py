"""The doctor, in broken surroundings: what it finds, and what it says to do."""

from __future__ import annotations

import json
import os
import resource
import socket
import stat
from pathlib import Path
from typing import Any

import pytest

from bridle.cli.doctoring import agents, home, machine, survival
from bridle.cli.doctoring.examination import Finding, Patient, examine
from bridle.cli.main import run
from bridle.cli.people import person_here
from bridle.config import load


@pytest.fixture
def system(tmp_path: Path) -> Path:
    """The root of a system with nothing in it."""
    root = tmp_path / "root"
    root.mkdir()
    return root


def patient(tmp_path: Path, root: Path = Path("/"), /, **environ: str) -> Patient:
    """Somebody with a home below this folder; `environ` is all that they have set."""
    given = {"BRIDLE_HOME": str(tmp_path / "home"), "HOME": str(tmp_path), **environ}
    return Patient(load({}, given), given, root)


def made_home(tmp_path: Path, mode: int = 0o700) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    folder.chmod(mode)
    return folder


def script(folder: Path, name: str, text: str) -> str:
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return str(folder)


def put(root: Path, path: str, text: str = "") -> None:
    file = root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


# --- Claude Code


async def claude(tmp_path: Path, **environ: str) -> Finding:
    (found,) = await agents.claude(patient(tmp_path, **environ))
    return found


async def test_without_claude_and_npx_it_fails_and_says_how_to_install_it(tmp_path: Path) -> None:
    found = await claude(tmp_path, PATH=str(tmp_path))
    assert found.level == "fail"
    assert "there is no `claude` on the PATH, and no npx" in found.words
    assert "npm install -g @anthropic-ai/claude-code" in found.remedy


async def test_with_npx_alone_it_warns(tmp_path: Path) -> None:
    path = script(tmp_path / "bin", "npx", "exit 1")
    found = await claude(tmp_path, PATH=path)
    assert found.level == "warn"
    assert "npx would fetch" in found.words


@pytest.mark.parametrize(
    ("version", "level", "words"),
    [
        ("2.1.325", "ok", "a tested version"),
        ("2.1.100", "ok", "between tested versions"),
        ("99.0.0", "warn", "newer than what was tested"),
        ("1.0.3", "fail", "Bridle needs 2.0.0 or newer"),
        ("", "warn", "does not tell its version"),
    ],
)
async def test_the_version_of_claude_is_held_against_those_that_were_tested(
    tmp_path: Path, version: str, level: str, words: str
) -> None:
    path = script(tmp_path / "bin", "claude", f"echo '{version} (Claude Code)'")
    found = await claude(tmp_path, PATH=f"{path}:/usr/bin:/bin")
    assert found.level == level
    assert words in found.words + found.remedy


async def test_a_command_that_is_set_and_not_there_fails(tmp_path: Path) -> None:
    found = await claude(tmp_path, BRIDLE_CLAUDE="no-such-program")
    assert found.level == "fail"
    assert "no program 'no-such-program'" in found.words


# --- login


def test_a_key_or_a_kept_login_will_do_and_is_not_read_aloud(tmp_path: Path) -> None:
    (none,) = agents.login(patient(tmp_path))
    assert none.level == "warn"
    assert "/login" in none.remedy
    (key,) = agents.login(patient(tmp_path, ANTHROPIC_API_KEY="sk-secret"))
    assert key.level == "ok"
    assert "sk-secret" not in str(key)
    put(tmp_path, "config/.credentials.json", '{"token": "hidden"}')
    folder = str(tmp_path / "config")
    (kept,) = agents.login(patient(tmp_path, CLAUDE_CONFIG_DIR=folder))
    assert kept.level == "ok"
    assert "hidden" not in str(kept)


# --- the home


def test_a_home_that_is_not_there_yet_is_fine(tmp_path: Path) -> None:
    (found,) = home.folder(patient(tmp_path))
    assert (found.level, "is not there yet" in found.words) == ("ok", True)


def test_a_home_that_others_can_read_fails_and_says_chmod(tmp_path: Path) -> None:
    folder = made_home(tmp_path, 0o755)
    (found,) = home.folder(patient(tmp_path))
    assert found.level == "fail"
    assert found.remedy == f"`chmod 700 {folder}`"
    folder.chmod(0o700)
    (found,) = home.folder(patient(tmp_path))
    assert found.level == "ok"


def test_a_home_that_is_a_file_fails(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    (found,) = home.folder(patient(tmp_path))
    assert found.level == "fail"


def test_a_home_of_somebody_else_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made_home(tmp_path)
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    (found,) = home.folder(patient(tmp_path))
    assert found.level == "fail"
    assert "another user" in found.words


def test_a_token_that_others_can_read_fails(tmp_path: Path) -> None:
    folder = made_home(tmp_path)
    (folder / "token").write_text("t")
    (folder / "token").chmod(0o644)
    (found,) = home.secrets(patient(tmp_path))
    assert found.level == "fail"
    assert found.remedy == f"`chmod 600 {folder / 'token'}`"
    (folder / "token").chmod(0o600)
    assert home.secrets(patient(tmp_path)) == []


def test_a_home_on_a_network_file_system_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(home, "file_system_of", lambda _: "nfs4")
    (found,) = home.file_system(patient(tmp_path))
    assert found.level == "fail"
    assert "network file system (nfs4)" in found.words


@pytest.mark.parametrize(("free", "level"), [("1", "ok"), ("900TB", "fail")])
def test_too_little_space_fails(tmp_path: Path, free: str, level: str) -> None:
    (found,) = home.space(patient(tmp_path, BRIDLE_FREE_BYTES=free))
    assert found.level == level


def test_a_port_that_another_program_has_fails(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        (found,) = home.server(patient(tmp_path, BRIDLE_PORT=str(port)))
    assert found.level == "fail"
    assert f"port {port}" in found.words
    assert "--port 0" in found.remedy


def test_an_address_that_is_not_ours_fails(tmp_path: Path) -> None:
    (found,) = home.server(patient(tmp_path, BRIDLE_HOST="192.0.2.1", BRIDLE_PORT="0"))
    assert found.level == "fail"


def test_a_server_that_answers_is_ours(tmp_path: Path) -> None:
    folder = made_home(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "bridle.sock"))
        server.listen()
        (found,) = home.server(patient(tmp_path))
    assert (found.level, found.about) == ("ok", "server")
    # Its socket is still there, and nobody behind it.
    (found,) = home.server(patient(tmp_path, BRIDLE_PORT="0"))
    assert (found.level, found.about) == ("ok", "port")


# --- what would end agents


def test_a_logout_that_ends_agents_warns_unless_lingering_is_on(
    tmp_path: Path, system: Path
) -> None:
    (system / "run/systemd/system").mkdir(parents=True)
    (found,) = survival.logout(patient(tmp_path, system))
    assert found.level == "ok"
    put(system, "/etc/systemd/logind.conf", "[Login]\n#KillUserProcesses=yes\n")
    (found,) = survival.logout(patient(tmp_path, system))
    assert found.level == "ok"
    put(system, "/etc/systemd/logind.conf.d/ours.conf", "[Login]\nKillUserProcesses=yes\n")
    (found,) = survival.logout(patient(tmp_path, system, SSH_CONNECTION="a", TMUX="b"))
    assert found.level == "warn"
    assert found.remedy == "`loginctl enable-linger`"
    assert "ssh and tmux" in found.words
    put(system, f"/var/lib/systemd/linger/{person_here()}")
    (found,) = survival.logout(patient(tmp_path, system))
    assert found.level == "ok"


@pytest.mark.parametrize(
    ("group", "mode", "level"),
    [
        ("0::/user.slice/user-1.slice/session-2.scope", "", "ok"),
        ("0::/user.slice/user-1.slice/user@1.service", "", "ok"),
        ("0::/system.slice/bridle.service", "control-group", "warn"),
        ("0::/system.slice/bridle.service", "process", "ok"),
    ],
)
def test_a_service_that_would_take_agents_with_it_warns(
    tmp_path: Path,
    system: Path,
    monkeypatch: pytest.MonkeyPatch,
    group: str,
    mode: str,
    level: str,
) -> None:
    put(system, "/proc/self/cgroup", f"{group}\n")
    monkeypatch.setenv("PATH", script(tmp_path / "bin", "systemctl", f"echo {mode}"))
    (found,) = survival.unit(patient(tmp_path, system))
    assert found.level == level
    if level == "warn":
        assert "KillMode=process" in found.remedy


def test_a_container_warns(tmp_path: Path, system: Path) -> None:
    assert survival.container(patient(tmp_path, system)) == []
    put(system, "/.dockerenv")
    (found,) = survival.container(patient(tmp_path, system))
    assert found.level == "warn"


# --- the machine


def test_without_git_it_warns(tmp_path: Path) -> None:
    (found,) = machine.git(patient(tmp_path, PATH=str(tmp_path)))
    assert (found.level, found.remedy) == ("warn", "install git")


def test_few_descriptors_and_few_watches_warn(
    tmp_path: Path, system: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 4096))
    (found,) = machine.descriptors(patient(tmp_path))
    assert (found.level, "ulimit -n" in found.remedy) == ("warn", True)
    put(system, "/proc/sys/fs/inotify/max_user_watches", "100\n")
    (found,) = machine.inotify(patient(tmp_path, system))
    assert (found.level, "max_user_watches" in found.remedy) == ("warn", True)


async def test_a_check_that_fails_itself_keeps_no_other_from_being_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: Patient) -> list[Finding]:
        raise OSError("no such luck")

    monkeypatch.setattr(machine, "git", broken)
    found = await examine(patient(tmp_path, PATH=str(tmp_path)))
    assert "it could not be looked at: OSError: no such luck" in [one.words for one in found]
    assert {"home", "claude", "login"} <= {one.about for one in found}


# --- the command


def doctor(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    code = run([*words, "doctor", "--json"])
    return code, json.loads(capsys.readouterr().out)["findings"]


def test_the_command_exits_with_1_when_something_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", script(tmp_path / "bin", "claude", "echo 2.1.325"))
    monkeypatch.setenv("BRIDLE_PORT", "0")
    monkeypatch.delenv("BRIDLE_CLAUDE", raising=False)
    folder = made_home(tmp_path)
    code, found = doctor(capsys, "--home", str(folder))
    assert (code, [one for one in found if one["level"] == "fail"]) == (0, [])
    folder.chmod(0o755)
    code, found = doctor(capsys, "--home", str(folder))
    assert code == 1
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755, "the doctor looks, and changes nothing"


def test_settings_that_can_not_be_read_are_a_finding_and_not_the_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = made_home(tmp_path)
    (folder / "bridle.toml").write_text("prot = 1\n")
    code, found = doctor(capsys, "--home", str(folder))
    assert code == 1
    assert found[0]["about"] == "settings"
    assert "did you mean 'port'?" in found[0]["words"]
    assert {"python", "home"} <= {one["about"] for one in found}
