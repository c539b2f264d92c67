"""Agents from outside by the command: tokens, who is listed, and how their clients are told."""

from __future__ import annotations

import json
import shlex
import stat
import sys

import httpx
import pytest

from .shells import Shell


def get(told: dict[str, str], token: str, path: str = "/api/v1/me") -> httpx.Response:
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.get(told["url"] + path, headers=headers, trust_env=False, verify=False)


def test_a_token_makes_an_agent_that_is_no_person_and_is_kept_for_its_owner_alone(
    shell: Shell,
) -> None:
    told = shell.up()
    said = shell.run("mcp", "token", "--policy", "edits", "--max-children", "2")
    path = shell.home / "mcp" / "outside.token"
    assert str(path) in said
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    token = path.read_text().strip()
    assert token not in said
    me = get(told, token).json()
    assert (me["role"], me["name"]) == ("agent", "outside")
    (session,) = shell.json("ps")
    assert session["external"] == "root"
    assert session["folder"] == str(shell.work)
    assert session["limits"]["concurrency"] == 2
    assert "idle (outside)" in shell.run("ps")


def test_a_permit_has_a_name_and_a_door_of_its_own(shell: Shell) -> None:
    told = shell.up()
    made = shell.json("mcp", "token", "--permit")
    assert made["name"] == "permit"
    assert made["token"]["role"] == "permit"
    assert get(told, made["text"]).status_code == 403
    assert "idle (permit)" in shell.run("ps")


@pytest.mark.slow
def test_without_a_server_no_token_is_made_or_taken_away_but_they_are_listed(shell: Shell) -> None:
    shell.up()
    shell.run("mcp", "token", "--name", "ide")
    shell.end_server()
    assert "`bridle up`" in shell.run("mcp", "token", "--name", "b", code=3)
    assert "`bridle up`" in shell.run("mcp", "revoke", "ide", code=3)
    (one,) = shell.json("mcp", "list")
    assert (one["name"], one["kind"], one["is_kept"]) == ("ide", "root", True)
    table = shell.run("mcp", "list")
    assert "ide" in table
    token = (shell.home / "mcp" / "ide.token").read_text().strip()
    assert f"…{token[-4:]}" in table
    assert token not in table


def test_a_name_that_is_taken_says_what_to_do(shell: Shell) -> None:
    shell.up()
    shell.run("mcp", "token")
    said = shell.run("mcp", "token", code=5)
    assert "is named outside already; give another --name; or `bridle mcp revoke outside`" in said
    assert "letters" in shell.run("mcp", "token", "--name", "../x", code=2)
    assert "there is no folder" in shell.run("mcp", "token", "--folder", "nowhere", code=2)


def test_who_is_revoked_has_ended_and_the_name_is_free_once_it_is_forgotten(shell: Shell) -> None:
    told = shell.up()
    made = shell.json("mcp", "token")
    assert shell.run("mcp", "revoke", "outside") == "revoked outside\n"
    assert get(told, made["text"]).status_code == 401
    assert not (shell.home / "mcp" / "outside.token").exists()
    (one,) = shell.json("mcp", "list")
    assert (one["state"], one["token"], one["is_kept"]) == ("stopped", None, False)
    assert "revoked" in shell.run("mcp", "list")
    assert shell.json("ps") == []
    shell.run("rm", "outside")
    assert shell.json("mcp", "token")["text"] != made["text"]
    assert "`bridle mcp list`" in shell.run("mcp", "revoke", "nobody", code=4)


def test_stopping_it_takes_its_token_away_too(shell: Shell) -> None:
    told = shell.up()
    made = shell.json("mcp", "token")
    shell.run("stop", "outside")
    assert get(told, made["text"]).status_code == 401
    shell.run("rm", "outside")
    assert shell.json("mcp", "list") == []
    shell.run("mcp", "revoke", "outside")
    assert not (shell.home / "mcp" / "outside.token").exists()


def test_the_end_of_all_agents_is_not_that_of_the_tokens(shell: Shell) -> None:
    shell.up()
    shell.run("mcp", "token")
    assert shell.json("down", "--stop-agents")["stopped_agents"] == 0
    (one,) = shell.json("mcp", "list")
    assert one["token"]


def test_a_token_that_can_not_be_kept_is_not_left_behind(shell: Shell) -> None:
    shell.up()
    (shell.home / "mcp").write_text("in the way")
    shell.run("mcp", "token", code=1)
    (one,) = shell.json("mcp", "list")
    assert one["token"] is None


def test_the_configuration_over_http_has_the_address_and_the_token(shell: Shell) -> None:
    told = shell.up()
    shell.run("mcp", "token")
    token = (shell.home / "mcp" / "outside.token").read_text().strip()
    done = shell.done("mcp", "config")
    assert json.loads(done.stdout) == {
        "mcpServers": {
            "bridle-agents": {
                "type": "http",
                "url": f"{told['url']}/mcp",
                "headers": {"Authorization": f"Bearer {token}"},
                "alwaysLoad": True,
            }
        }
    }
    assert "keep it to yourself" in done.stderr
    assert shell.json("mcp", "config") == json.loads(done.stdout)


def test_the_configuration_by_the_proxy_has_no_token_and_needs_no_server(shell: Shell) -> None:
    shell.up()
    shell.run("mcp", "token", "--name", "ide")
    shell.end_server()
    (entry,) = shell.json("mcp", "config", "--stdio", "--name", "ide")["mcpServers"].values()
    words = ["--home", str(shell.home), "mcp", "stdio", "--name", "ide"]
    assert entry["command"] == sys.executable
    assert entry["args"] == ["-P", "-m", "bridle.cli", *words]
    assert "take --stdio" in shell.run("mcp", "config", "--name", "ide", code=3)


def test_the_configuration_of_a_permit_waits_long_and_tells_the_flag(shell: Shell) -> None:
    shell.up()
    shell.run("mcp", "token", "--permit")
    for flags in ((), ("--stdio",)):
        done = shell.done("mcp", "config", "--permit", *flags)
        (name,), (entry,) = zip(*json.loads(done.stdout)["mcpServers"].items(), strict=True)
        assert name == "bridle-permit"
        assert entry["timeout"] >= 3_600_000
        assert entry["alwaysLoad"] is True
        assert ("--permit" in entry.get("args", ())) == bool(flags)
        assert "--permission-prompt-tool mcp__bridle-permit__loopback_permit" in done.stderr


def test_the_line_for_claude_adds_the_same_entry(shell: Shell) -> None:
    shell.up()
    shell.run("mcp", "token")
    line = shlex.split(shell.run("mcp", "config", "--stdio", "--claude"))
    (entry,) = shell.json("mcp", "config", "--stdio")["mcpServers"].values()
    assert line[:4] == ["claude", "mcp", "add-json", "bridle-agents"]
    assert json.loads(line[4]) == entry
    assert shlex.split(shell.json("mcp", "config", "--stdio", "--claude")["line"]) == line


def test_no_line_for_a_shell_has_a_token_in_it(shell: Shell) -> None:
    shell.up()
    shell.run("mcp", "token")
    assert "--stdio" in shell.run("mcp", "config", "--claude", code=2)


@pytest.mark.parametrize("words", [(), ("--stdio",), ("--stdio", "--claude")])
def test_a_configuration_without_a_token_says_how_to_make_one(
    shell: Shell, words: tuple[str, ...]
) -> None:
    shell.up()
    said = shell.run("mcp", "config", "--permit", *words, code=4)
    assert "make one with `bridle mcp token --permit`" in said
