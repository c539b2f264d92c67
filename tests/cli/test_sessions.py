"""Agents by the command, as a person uses it: a real server, real processes, a fake CLI."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
from pathlib import Path

import httpx
import pytest

from bridle.policy.policy import Policy
from tests.supervisor.test_conversations import ID, stored

from .shells import LIMIT, PROMPT, TURN, Shell, asks, lines_of

KNOWN = "bridle: there is no session nobody; list them with `bridle ps --all`\n"


@pytest.fixture
def served(shell: Shell) -> Shell:
    """With a server, and agents that answer as often as they are asked."""
    shell.claude(*TURN * 5)
    shell.up()
    return shell


def test_an_agent_is_started_listed_told_stopped_resumed_forked_and_removed(
    served: Shell,
) -> None:
    said = served.run("start", "Say hello", "--name", "greeter", "--label", "team=core")
    assert said.startswith("started greeter (")
    made = served.session("greeter", "idle")
    assert made["folder"] == str(served.work)
    assert made["labels"] == {"team": "core"}
    header, row = served.run("ps").splitlines()
    assert header.split()[:3] == ["NAME", "ID", "STATE"]
    assert row.split()[:3] == ["greeter", made["id"][:8], "idle"]
    assert served.run("ps", "-q") == made["id"] + "\n"

    assert served.run("send", "greeter", "Again") == "sent\n"
    served.until("ps", holds=lambda found: found[0]["turns"] == 2)
    assert served.run("stop", made["id"][:6]) == f"stopped {made['id'][:6]}\n"
    assert served.json("ps") == []
    assert served.run("resume", "greeter", "Go on").startswith("resumed greeter")
    served.until("ps", holds=lambda found: found[0]["turns"] == 3 and found[0]["state"] == "idle")
    forked = served.json("fork", "greeter", "--name", "second")
    assert forked["forked_from"] == made["id"]
    assert "removed greeter" in served.run("rm", "-f", "greeter", "second")
    assert served.json("ps", "--all") == []


def test_several_sessions_are_stopped_at_once_and_one_that_fails_keeps_no_other(
    served: Shell,
) -> None:
    for name in ("one", "two"):
        served.run("start", "go", "--name", name)
        served.session(name, "idle")
    done = served.done("stop", "one", "nobody", "two")
    assert done.returncode == 4
    assert done.stdout == "stopped one\nstopped two\n"
    assert done.stderr == KNOWN
    done = served.done("rm", "nobody", "one", "noone", "no-one", "--json")
    assert [one["name"] for one in json.loads(done.stdout)] == ["one"]
    assert done.stderr == "".join(
        KNOWN.replace("nobody", name) for name in ("nobody", "noone", "no-one")
    )


def test_what_is_not_possible_now_says_what_to_do_and_has_its_code(served: Shell) -> None:
    served.run("start", "go", "--name", "one")
    served.session("one", "idle")
    assert "stop it first" in served.run("rm", "one", code=5)
    assert "nothing to interrupt" in served.run("interrupt", "one", code=5)
    served.run("stop", "one")
    assert "resume it first" in served.run("send", "one", "hi", code=5)
    assert "has the name 'one'" in served.run("start", "x", "--name", "one", code=5)


def test_a_turn_is_interrupted(shell: Shell) -> None:
    interrupted = {"subtype": "error_during_execution", "terminal_reason": "aborted_tools"}
    shell.claude(
        PROMPT, {"init": {}}, {"await_request": "interrupt"}, {"result": interrupted}, PROMPT
    )
    shell.up()
    shell.run("start", "go", "--name", "one")
    shell.session("one", "running")
    assert shell.run("interrupt", "one") == "interrupted one\n"
    assert shell.session("one", "idle")["outcome"] == "cancelled"


def test_an_agent_is_paused_and_unpaused_and_the_other_is_not(served: Shell) -> None:
    for name in ("one", "two"):
        served.run("start", "go", "--name", name)
        served.session(name, "idle")
    assert served.run("pause", "one") == "paused one\n"
    served.session("one", "paused")
    served.session("two", "idle")
    assert served.run("unpause", "one") == "unpaused one\n"
    served.session("one", "idle")


def test_what_was_used_is_told_by_session_and_in_all(served: Shell) -> None:
    served.run("start", "--name", "one", "--no-start")
    served.run("start", "go", "--name", "two")
    served.session("two", "idle")
    header, *rows = served.run("usage").splitlines()
    assert header.split()[:3] == ["SESSION", "TURNS", "TOKENS"]
    assert [row.split()[:2] for row in rows] == [["one", "0"], ["two", "1"], ["all", "1"]]
    assert served.json("usage")["total"]["turns"] == 1
    assert served.run("release") == "nothing was held\n"
    assert served.json("release") == {"was_held": False}


def test_what_is_kept_is_read_while_no_server_is_up(served: Shell) -> None:
    for name in ("one", "two"):
        served.run("start", "go", "--name", name, "--no-start")
    served.kill_server()
    assert [one["name"] for one in served.json("ps", "--all")] == ["one", "two"]
    assert served.json("approvals") == []
    assert "session.created" in served.run("logs", "two", "--events")
    assert "no server is up; start one with `bridle up`" in served.run("stop", "one", code=3)


def test_a_conversation_of_claude_codes_own_is_listed_and_gone_on_with(shell: Shell) -> None:
    assert "has stored no conversations" in shell.run("import")
    for id_ in (ID, "another"):
        stored(shell.folder / "user" / ".claude", shell.work, id_)
    assert {one["id"] for one in shell.json("import")} == {ID, "another"}
    assert "Greet me." in shell.run("import")
    shell.claude(*TURN)
    shell.up()
    made = shell.json("import", ID[:4], "--name", "greeter")
    assert shell.session("greeter", "idle")["id"] == made["id"]
    assert {one["id"]: one.get("session") for one in shell.json("import")}[ID] == made["id"]
    assert "begin with 'zzz'" in shell.run("import", "zzz", code=4)
    assert "bridle import" in shell.run("start", "go", "--resume", "zzz", code=1)
    other = shell.json("start", "go", "--resume", "another", "--no-start")
    assert other["claude_session_id"] == "another"


def test_a_prompt_comes_from_a_pipe_too(served: Shell) -> None:
    served.run("start", "-", "--name", "one", stdin="First, from a pipe")
    served.session("one", "idle")
    served.run("send", "one", stdin="Second, from a pipe")
    served.until("ps", holds=lambda found: found[0]["turns"] == 2)
    logs = served.run("logs", "one")
    assert "First, from a pipe" in logs
    assert "Second, from a pipe" in logs


def test_all_that_start_can_say_reaches_the_session(served: Shell, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("from a file\n")
    (served.work / "policy.toml").write_text('preset = "edits"\n')
    parent = served.json("start", "go", "--name", "parent", "--max-cost", "5")
    made = served.json(
        *("start", "go", "--name", "one", "--parent", "parent", "--policy", "policy.toml"),
        *("--mode", "plan", "--model", "opus", "--orphans", "hand-over", "--no-start"),
        *("--max-turns", "3", "--max-cost", "1.5", "--max-seconds", "60", "--max-tokens", "1000"),
        *("--max-children", "0", "--label", "a=b", "--label", "c=d=e", "-o", "effort=high"),
        *("-o", "append-system-prompt=Be brief", "-o", "max-thinking-tokens=2048"),
        *("--env", "GIVEN=1", "--env-plain", "PLAIN=2", "--env-from", "HOME"),
        *("--env-file", f"FILED={tmp_path / 'secret'}"),
    )
    assert made["parent"] == parent["id"]
    assert (made["mode"], made["model"], made["orphans"]) == ("plan", "opus", "hand over")
    assert made["limits"] == {
        "turns": 3,
        "cost_usd": 1.5,
        "seconds": 60.0,
        "tokens": 1000,
        "concurrency": 0,
    }
    assert made["labels"] == {"a": "b", "c": "d=e"}
    assert made["state"] == "stopped"
    assert [one["name"] for one in served.json("ps", "-a", "--filter", "label=a=b")] == ["one"]
    assert [one["name"] for one in served.json("ps", "-a", "-f", "parent=parent")] == ["one"]
    assert served.json("ps", "-a", "-f", "label=a=b", "-f", "label=c=x") == []
    both = ("-f", "state=idle", "-f", "state=stopped", "-f", "label=a=b")
    assert [one["name"] for one in served.json("ps", *both)] == ["one"]


def test_what_start_is_given_wrong_is_told_by_the_server(served: Shell) -> None:
    assert "no option 'colour'" in served.run("start", "x", "-o", "colour=red", code=1)
    assert "There is no policy 'nope'" in served.run("start", "x", "--policy", "nope", code=4)
    assert "there is no such file" in served.run("start", "x", "--policy", "no.toml", code=1)


def test_limits_policy_and_model_are_changed_by_set(served: Shell) -> None:
    served.run("start", "go", "--name", "one", "--max-turns", "1", "--max-cost", "2")
    served.session("one", "paused", "idle")
    changed = served.json("set", "one", "--max-turns", "9", "--policy", "read-only")
    assert changed["limits"]["turns"] == 9
    assert changed["limits"]["cost_usd"] == 2
    served.session("one", "idle")
    assert changed["policy"] == Policy("read-only").digest
    assert served.run("set", "one", "--max-children", "0").startswith("changed one (")
    changed = served.json("set", "one", "--model", "opus", "--mode", "plan")
    logged = map(json.loads, served.run("logs", "one", "--events", "--json").splitlines())
    told = [one["body"]["line"]["request"] for one in logged if one["kind"] == "bridle.wrote"
            and one["body"]["what"] == "request"]  # fmt: skip
    assert {"subtype": "set_model", "model": "opus"} in told
    assert {"subtype": "set_permission_mode", "mode": "plan"} in told
    assert changed["limits"] == {"turns": 9, "cost_usd": 2.0, "concurrency": 0}
    assert "nothing to change" in served.run("set", "one", code=2)


def test_ps_watches_as_lines_of_json(served: Shell) -> None:
    watching = served.start("ps", "-w", "--json", stdout=-1)
    assert watching.stdout
    try:
        served.run("start", "go", "--name", "one")
        for line in lines_of(watching.stdout.fileno()):
            if json.loads(line)["state"] == "idle":
                break
    finally:
        watching.kill()
        watching.wait()
        watching.stdout.close()
    assert "--watch needs a terminal" in served.run("ps", "-w", code=2)


def test_ps_watches_on_a_terminal_until_ctrl_c(served: Shell) -> None:
    master, slave = pty.openpty()
    watching = served.start("ps", "-w", stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    served.run("start", "go", "--name", "greeter")
    seen = ""
    while "idle" not in seen:
        assert select.select([master], [], [], LIMIT)[0], seen
        seen += os.read(master, 65536).decode()
    assert "greeter" in seen
    watching.send_signal(signal.SIGINT)
    assert watching.wait(LIMIT) == 130
    os.close(master)


@pytest.mark.slow
def test_agents_are_read_from_the_home_while_no_server_is_up(shell: Shell) -> None:
    shell.claude(*asks())
    shell.up()
    shell.run("start", "go", "--name", "one")
    waiting = shell.approval()
    shell.kill_server()
    (session,) = shell.json("ps")
    assert session["name"] == "one"
    assert [one["id"] for one in shell.json("approvals")] == [waiting["id"]]
    assert shell.json("approvals", "show", waiting["id"][:6])["approval"]["id"] == waiting["id"]
    assert "go" in shell.run("logs", "one")
    assert "all" in shell.run("usage")
    assert shell.json("audit", "verify")["is_intact"] is True
    for words in (("send", "one", "x"), ("stop", "one"), ("approve", waiting["id"]), ("url",)):
        assert "no server is up; start one with `bridle up`" in shell.run(*words, code=3)
    told = shell.up()
    assert told["recovered"]["alive"] == [session["id"]]
    assert told["recovered"]["pending"] == [waiting["id"]]
    shell.run("approve", waiting["id"][:8])
    assert shell.session("one", "idle")["turns"] == 1


def test_down_can_stop_the_agents_too(served: Shell) -> None:
    served.run("start", "go", "--name", "one")
    served.session("one", "idle")
    assert served.json("down", "--stop-agents")["stopped_agents"] == 1
    (session,) = served.json("ps", "--all")
    assert session["state"] == "stopped"


def test_another_server_is_talked_to_by_its_address_and_a_token(
    served: Shell, tmp_path: Path
) -> None:
    served.run("start", "go", "--name", "one")
    home = {"BRIDLE_HOME": str(tmp_path / "elsewhere")}
    url = json.loads((served.home / "server.json").read_text())["url"]
    reader = served.run("token", "new", "--role", "reader", "--name", "looker").strip()
    by_reader = {**home, "BRIDLE_URL": url, "BRIDLE_TOKEN": reader}
    done = served.done("ps", "--json", env=by_reader)
    assert [one["name"] for one in json.loads(done.stdout)] == ["one"]
    done = served.done("stop", "one", env=by_reader)
    assert done.returncode == 1
    assert "A read-only token does not do for this; it takes a person's token" in done.stderr
    done = served.done("ps", env={**home, "BRIDLE_URL": url})
    assert "This needs a token" in done.stderr
    done = served.done("--url", f"unix:{served.home}/bridle.sock", "ps", "-q", env=home)
    assert done.returncode == 0
    done = served.done("--url", "nonsense", "ps", env=home)
    assert (done.returncode, "is no server's address" in done.stderr) == (2, True)
    done = served.done("--url", "http://127.0.0.1:1", "ps", env=home)
    assert (done.returncode, "no server answers at" in done.stderr) == (3, True)


def test_tokens_are_made_listed_and_taken_away(served: Shell) -> None:
    made = served.json("token", "new", "--name", "ci")
    text = made["text"]
    url = json.loads((served.home / "server.json").read_text())["url"]
    headers = {"Authorization": f"Bearer {text}"}
    assert httpx.get(f"{url}/api/v1/me", headers=headers).json()["name"] == "ci"
    assert text not in served.run("token", "list")
    assert "ci" in served.run("token", "list")
    assert served.run("token", "revoke", made["token"]["id"][:8]).startswith("revoked ")
    assert httpx.get(f"{url}/api/v1/me", headers=headers).status_code == 401
    assert "begins with nothing" in served.run("token", "revoke", "nothing", code=4)
    said = served.run("token", "new", "--role", "agent", "--name", "x", code=2)
    assert "an agent's token is for one session" in said


def test_names_that_are_not_unique_or_not_there_are_told(served: Shell) -> None:
    assert served.run("stop", "nobody", code=4) == KNOWN
    assert "there is no session '../x'" in served.run("stop", "../x", code=4)
    assert "there is no approval nobody" in served.run("approve", "nobody", code=4)


def test_a_tab_offers_the_names_of_sessions(served: Shell) -> None:
    served.run("start", "go", "--name", "greeter")
    words = {"_BRIDLE_COMPLETE": "complete_bash", "COMP_WORDS": "bridle stop gr", "COMP_CWORD": "2"}
    assert served.done(env=words).stdout.split() == ["greeter"]


def test_what_an_agent_wrote_can_not_move_the_cursor(served: Shell) -> None:
    folder = served.work / "a\x1b[2Jb"
    folder.mkdir()
    served.run("start", "go", "--name", "one", "--cwd", str(folder))
    row = served.run("ps").splitlines()[1]
    assert "\x1b" not in row
    assert "\\u001b[2Jb" in row


def test_usage_is_told_for_each_and_for_all(served: Shell) -> None:
    served.run("start", "go", "--name", "one")
    served.session("one", "idle")
    found = served.json("usage", "--models")
    assert found["total"]["turns"] == 1
    assert [one["name"] for one in found["sessions"]] == ["one"]
    lines = served.run("usage").splitlines()
    assert lines[1].split()[:2] == ["one", "1"]
    assert lines[-1].split()[:2] == ["all", "1"]


def test_the_log_is_verified_and_a_change_in_it_is_found(served: Shell) -> None:
    import sqlite3

    served.run("start", "go", "--name", "one")
    session = served.session("one", "idle")
    assert "intact" in served.run("audit", "verify", "one")
    served.run("stop", "one")
    served.end_server()
    with sqlite3.connect(served.home / "journal.db") as journal:
        journal.execute("UPDATE event SET body = replace(body, ?, ?) WHERE seal IS NOT NULL",
                        (b"ask", b"All"))  # fmt: skip
    journal.close()
    found = served.json("audit", "verify", code=1)
    assert found["is_intact"] is False
    assert [one["stream"] for one in found["streams"] if not one["is_intact"]] == [session["id"]]
    assert os.environ.get("BRIDLE_HOME") != str(served.home)


def test_a_log_that_was_cut_is_told_with_what_to_do_and_can_be_accepted(shell: Shell) -> None:
    import sqlite3

    kept = shell.folder / "kept"
    shell.env["BRIDLE_ANCHOR_COMMAND"] = f"sh -c 'cat >> {kept}'"
    shell.claude(*TURN)
    shell.up()
    shell.run("start", "go", "--name", "one")
    session = shell.session("one", "idle")["id"]
    assert "broken" not in shell.run("audit", "verify")
    shell.run("stop", "one")
    shell.end_server()
    assert session in kept.read_text()
    assert "broken" not in shell.run("audit", "verify", "--anchors", str(kept))
    with sqlite3.connect(shell.home / "journal.db") as journal:
        (id_,) = journal.execute("SELECT id FROM stream WHERE name = ?", (session,)).fetchone()
        journal.execute("DELETE FROM event WHERE key > ? AND key >> 40 = ?", (id_ << 40 | 3, id_))
        row = "SELECT substr(seal, 33) FROM event WHERE key >> 40 = ? AND seal IS NOT NULL"
        (seal,) = journal.execute(f"{row} ORDER BY key DESC", (id_,)).fetchone()
        journal.execute("UPDATE stream SET seal = ? WHERE id = ?", (seal, id_))
    journal.close()
    told = shell.done("audit", "verify", "one")
    assert told.returncode == 1
    assert "at 4: events 4 to " in told.stdout
    assert "bridle audit accept" in told.stdout
    assert shell.run("audit", "accept").startswith(f"accepted: {session}: events 4 to ")
    assert "nothing to accept" in shell.run("audit", "accept")
    assert "broken" not in shell.run("audit", "verify")
    assert "can't be read" in shell.run("audit", "verify", "--anchors", "/etc/passwd", code=1)
