"""Paths that mean one file to Bridle and another to whoever opens it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bridle.policy import Call, Policy
from bridle.session.ground import ground_of

from .grounds import FOLDER, GROUND, bash, told

EDITS = Policy("edits").on(GROUND)
HIDING = Policy("edits", deny=["Read(./secrets/**)", "Read(.env)", "Edit(.env)"]).on(GROUND)
#: What versions of the CLI drop at the ends of a path.
BLANKS = " \t\n\r\v\f\u00a0\u2003\u2028\u202f\u3000\ufeff"


@pytest.mark.parametrize("blank", BLANKS)
def test_a_path_with_blanks_at_its_ends_is_asked_about_and_denied_as_without_them(
    blank: str,
) -> None:
    for path in (f"{blank}/outside/x", f"src/a.py{blank}", f"{blank}src/a.py"):
        call = Call("Write", {"file_path": path, "content": ""})
        assert told(EDITS.judge(call)) == "ask", path
    for path in (f"{blank}.env", f".env{blank}", f"{FOLDER}/.env{blank}{blank}"):
        assert told(HIDING.judge(Call("Read", {"file_path": path}))) == "deny"
        assert told(HIDING.judge(Call("Write", {"file_path": path, "content": ""}))) == "deny"
    for path in (f".mcp.json{blank}", f".bashrc{blank}", f"{blank}.claude/settings.json"):
        assert told(EDITS.judge(Call("Write", {"file_path": path, "content": ""}))) == "guard"


def test_rare_forms_of_characters_are_asked_about_and_denied_as_the_usual_ones() -> None:
    composed, apart = "caf\u00e9", "cafe\u0301"
    hiding = Policy("edits", deny=[f"Read({composed}.txt)", "Read(9 AM.png)"]).on(GROUND)
    assert told(hiding.judge(Call("Read", {"file_path": f"{apart}.txt"}))) == "deny"
    assert told(hiding.judge(Call("Read", {"file_path": "9\u202fAM.png"}))) == "deny"
    assert told(EDITS.judge(Call("Read", {"file_path": f"{apart}.txt"}))) == "ask"
    assert told(EDITS.judge(Call("Read", {"file_path": f"{composed}.txt"}))) == "allow"
    assert told(EDITS.judge(Call("Write", {"file_path": "src/a b.py", "content": ""}))) == "allow"


@pytest.mark.parametrize(
    "way", ["/proc/self/cwd", "/proc/thread-self/cwd", "/proc/1234/cwd", "/proc/self/task/77/cwd"]
)
def test_a_folder_below_proc_is_that_of_the_agent_and_not_ours(way: str) -> None:
    assert told(HIDING.judge(Call("Read", {"file_path": f"{way}/secrets/key"}))) == "deny"
    assert told(HIDING.judge(bash(f"cat {way}/secrets/key"))) == "deny"
    assert told(EDITS.judge(Call("Read", {"file_path": f"{way}/a.py"}))) == "ask"
    assert told(EDITS.judge(bash(f"cat {way}/a.py"))) == "ask"
    assert told(EDITS.judge(Call("Write", {"file_path": f"{way}/a.py", "content": ""}))) == "ask"
    assert told(EDITS.judge(Call("Grep", {"pattern": "x", "path": way}))) == "ask"


def test_roots_and_open_files_of_processes_are_asked_about() -> None:
    assert told(HIDING.judge(Call("Read", {"file_path": f"/proc/1/root{FOLDER}/.env"}))) == "deny"
    for path in (
        "/proc/self/fd/3",
        "/dev/fd/3",
        "/dev/fd/../x",
        "/proc/9/exe",
        "/proc/self/root/x",
    ):
        assert told(EDITS.judge(Call("Read", {"file_path": path}))) == "ask", path
        assert told(EDITS.judge(bash(f"cat {path}"))) == "ask", path
    assert told(EDITS.judge(bash("sort /dev/stdin"))) == "allow"
    assert told(EDITS.judge(bash("cat /proc/meminfo"))) == "allow"


def test_links_are_followed_up_to_what_is_another_file_for_each_process(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "secrets").mkdir()
    (tmp_path / "self").symlink_to("/proc/self/cwd")
    (tmp_path / "open").symlink_to("/dev/fd")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "round").symlink_to("round")
    ground = ground_of(tmp_path, home="/home/me")
    policy = Policy("edits", deny=["Read(./secrets/**)"]).on(ground)
    resolve = ground.resolve
    assert resolve("/proc/self/cwd/a") == "/proc/self/cwd/a"
    assert resolve(f"{tmp_path}/self/a") == "/proc/self/cwd/a"
    assert resolve(f"{tmp_path}/link/../link/a") == os.path.realpath(tmp_path / "real" / "a")
    assert resolve(f"{tmp_path}/round/a").startswith(f"{tmp_path}/round")
    assert told(policy.judge(Call("Read", {"file_path": "self/secrets/key"}))) == "deny"
    assert told(policy.judge(Call("Read", {"file_path": "self/a"}))) == "ask"
    assert told(policy.judge(bash("cat self/a"))) == "ask"
    assert told(policy.judge(bash("cat open/3"))) == "ask"
    assert told(policy.judge(bash("echo x > self/a"))) == "ask"
