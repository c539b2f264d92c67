"""Policies and trust by the command: without a server, and kept in the home."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from bridle.cli.main import run
from bridle.policy.files import parse_policy

from .shells import Shell, asks


@pytest.fixture(autouse=True)
def _at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRIDLE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


class Said:
    """What a command prints, in this process: none of these needs another."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: str, code: int = 0) -> str:
        assert run(words) == code, self._capsys.readouterr()
        said = self._capsys.readouterr()
        assert "Traceback" not in said.err
        return said.err if code else said.out


@pytest.fixture
def bridle(capsys: pytest.CaptureFixture[str]) -> Said:
    return Said(capsys)


def test_a_policy_is_checked_and_a_mistake_has_its_file_and_line(
    bridle: Said, tmp_path: Path
) -> None:
    file = tmp_path / "policy.toml"
    file.write_text('preset = "edits"\nallow = [\n  "Bash(npm test:*)",\n]\n')
    assert bridle("policy", "check", "policy.toml").startswith(
        "policy.toml can be used: preset edits, 1 rule ("
    )
    file.write_text('allow = [\n  "bash(ls)",\n]\n')
    said = bridle("policy", "check", "policy.toml", code=1)
    assert said == f"bridle: {file}:2: 'bash(ls)' is no rule: the tool is called Bash\n"
    assert bridle("policy", "check", "ask").startswith("ask can be used: preset ask, no rules")
    said = bridle("policy", "check", "nope", code=4)
    assert said == "bridle: there is no policy 'nope'; see `bridle policy list`\n"


def test_a_policy_explains_what_it_would_answer(bridle: Said, tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text('allow = ["Bash(npm run test:*)"]\n')
    said = bridle("policy", "explain", "npm run test && rm -rf build", "-p", "policy.toml")
    assert said.splitlines() == [
        "Asked: no rule allows `rm -rf build`; runs npm, rm",
        "  would be allowed by: Bash(npm run test && rm -rf build)",
    ]
    found = json.loads(bridle("policy", "explain", "npm run test", "-p", "policy.toml", "--json"))
    assert found["verdict"]["type"] == "allow"
    assert found["suggestions"] == []
    edit = json.dumps({"file_path": str(tmp_path / "a.py"), "old_string": "", "new_string": ""})
    said = bridle("policy", "explain", "--tool", "Edit", "--input", edit, "-p", "edits")
    assert said.startswith("Allowed")
    assert bridle("policy", "explain", "ls", "-p", "read-only").startswith("Allowed")
    assert "give a shell command" in bridle("policy", "explain", code=2)
    assert "is no JSON object" in bridle("policy", "explain", "--input", "x", code=2)
    assert "there is no folder" in bridle("policy", "explain", "ls", "--cwd", "/none", code=2)


def test_policies_are_kept_shown_listed_extended_and_removed(bridle: Said, tmp_path: Path) -> None:
    (tmp_path / "team.toml").write_text('# ours\npreset = "edits"\nguard = false\n')
    assert bridle("policy", "add", "team", "team.toml") == "kept team: preset edits, 0 rules\n"
    added = ("--allow", 'Bash(echo "hi":*)', "--deny", "Read(./secrets/**)")
    assert bridle("policy", "add", "team", *added) == "kept team: preset edits, 2 rules\n"
    bridle("policy", "add", "team", "--ask", "WebSearch", "--preset", "ask")
    shown = json.loads(bridle("policy", "show", "team", "--json"))
    assert (shown["preset"], shown["guard"]) == ("ask", False)
    assert {(one["behavior"], one["text"]) for one in shown["rules"]} == {
        ("allow", 'Bash(echo "hi":*)'),
        ("deny", "Read(./secrets/**)"),
        ("ask", "WebSearch"),
    }
    rows = bridle("policy", "list").splitlines()
    assert rows[-1].split()[:4] == ["team", "kept", "ask", "3"]
    bridle("policy", "add", "new", "--preset", "read-only")
    assert bridle("policy", "remove", "team") == "removed team\n"
    gone = bridle("policy", "remove", "team", code=4)
    assert gone == "bridle: There is no policy 'team'; see `bridle policy list`\n"
    assert "There is no policy 'team'" in bridle("policy", "show", "team", code=4)


def test_what_is_done_with_a_policy_is_told_as_json_too(bridle: Said, tmp_path: Path) -> None:
    presets = [one["name"] for one in json.loads(bridle("policy", "list", "--json"))]
    assert presets == ["ask", "read-only", "edits", "plan", "autonomous"]
    kept = json.loads(bridle("policy", "add", "team", "--deny", "WebFetch", "--json"))
    assert (kept["name"], [one["text"] for one in kept["rules"]]) == ("team", ["WebFetch"])
    (listed,) = [one for one in json.loads(bridle("policy", "list", "--json")) if "by" in one]
    assert listed["name"] == "team"
    checked = json.loads(bridle("policy", "check", "team", "--json"))
    assert (checked["preset"], [one["text"] for one in checked["rules"]]) == ("ask", ["WebFetch"])
    assert json.loads(bridle("policy", "remove", "team", "--json")) == {"name": "team"}
    (tmp_path / "bytes.toml").write_bytes(b"\xff")
    assert "can't be read" in bridle("policy", "add", "team", "bytes.toml", code=2)
    assert "can't be read" in bridle("policy", "add", "team", str(tmp_path), code=2)


def test_where_nothing_is_kept_there_are_the_presets(bridle: Said) -> None:
    header, *rows = bridle("policy", "list").splitlines()
    assert header.split() == ["NAME", "KIND", "PRESET", "RULES", "BY"]
    assert [row.split()[:3] for row in rows] == [
        [name, "preset", name] for name in ("ask", "read-only", "edits", "plan", "autonomous")
    ]


def test_trust_is_given_and_taken_back_as_json_too(bridle: Said, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name / ".claude").mkdir(parents=True)
        (tmp_path / name / ".claude" / "settings.json").write_text('{"env": {"A": "b"}}')
    for name in ("one", "two"):
        given = json.loads(bridle("trust", "add", str(tmp_path / name), "--yes", "--json"))
        assert given["folder"] == str(tmp_path / name)
    gone = json.loads(bridle("trust", "remove", str(tmp_path / "one"), "--json"))
    assert gone == {"folder": str(tmp_path / "one"), "is_trusted": False}
    left = json.loads(bridle("trust", "list", "--json"))
    assert [one["folder"] for one in left] == [str(tmp_path / "two")]


def test_every_setting_is_shown_with_where_it_came_from(
    bridle: Said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BRIDLE_PORT", "0")
    monkeypatch.setenv("BRIDLE_TOKEN", "secret")
    rows = {row.split()[0]: row.split()[1:] for row in bridle("config", "show").splitlines()}
    assert rows["port"] == ["0", "BRIDLE_PORT"]
    assert rows["stop_agents"] == ["false", "default"]
    assert rows["model"] == ["-", "default"]
    found = json.loads(bridle("config", "show", "--json"))
    assert found["port"] == {"value": 0, "source": "BRIDLE_PORT"}
    assert found["token"]["value"] == "(set)"
    assert found["stop_agents"] == {"value": False, "source": "default"}


REFUSED = [
    (["remove", "team"], 3, "there is no home at "),
    (["add", "team"], 2, "give a file, or what is to be added"),
    (["add", "team", "x.toml", "--allow", "Bash"], 2, "give a file, or what is to be added"),
    (["add", "ask", "--allow", "Bash"], 2, "ask is a preset"),
    (["add", "team", "--allow", "bash"], 1, "the tool is called Bash"),
    (["add", "team", "--preset", "wild"], 1, "no preset 'wild'"),
    (["add", "te/am", "--allow", "Bash"], 2, "A policy's name has up to 100 letters"),
    (["add", "../x", "none.toml"], 2, "A policy's name has up to 100 letters"),
    (["add", "team", "none.toml"], 4, "there is no file none.toml; give the path of"),
    (["test", "ask", "--calls", "no.json"], 4, "there is no file no.json; give one that is"),
]


@pytest.mark.parametrize(("words", "code", "said"), REFUSED, ids=range(len(REFUSED)))
def test_what_can_not_be_kept_is_told(bridle: Said, words: list[str], code: int, said: str) -> None:
    assert said in bridle("policy", *words, code=code)


@pytest.mark.parametrize("rule", ['Bash(echo "a\\b")', "Bash(echo é)", "Edit(/a b/**)"])
def test_a_rule_is_written_so_that_it_is_read_as_it_was(rule: str) -> None:
    from bridle.cli.commands.keeping import written

    text = written("ask", True, {"allow": [rule, rule], "ask": [], "deny": []})
    assert [one.text for one in parse_policy(text, "x").rules] == [rule]


def test_a_policy_is_tried_on_calls_of_a_file(bridle: Said, tmp_path: Path) -> None:
    calls = [
        {"tool": "Bash", "input": {"command": "npm test"}, "expect": "allow"},
        {"tool": "Bash", "input": {"command": "rm -rf /"}, "expect": "allow"},
        {"tool": "Read", "input": {"file_path": "x"}},
    ]
    (tmp_path / "calls.json").write_text(json.dumps(calls))
    (tmp_path / "p.toml").write_text('allow = ["Bash(npm test)"]\ndeny = ["Bash(rm:*)"]\n')
    said = bridle("policy", "test", "p.toml", "--calls", "calls.json")
    assert "this would have answered 3 of 3" in said
    assert "and 1 differently" in said
    assert "rm -rf /" in said
    assert run(["policy", "test", "p.toml", "--calls", "calls.json", "--strict"]) == 1
    bridle("version")
    (tmp_path / "calls.json").write_text('[{"tool": 1}]')
    assert "has no calls" in bridle("policy", "test", "p.toml", "--calls", "calls.json", code=2)
    both = ("--calls", "x", "--session", "y")
    assert "two things" in bridle("policy", "test", "ask", *both, code=2)


def test_a_policy_is_tried_on_what_agents_have_asked(shell: Shell) -> None:
    shell.claude(*asks())
    shell.up()
    shell.run("start", "go", "--name", "one")
    shell.run("approve", shell.approval()["id"])
    shell.session("one", "idle")
    found = shell.json("policy", "test", "read-only", "--session", "one")
    assert (found["total"], found["answered"], len(found["differently"])) == (1, 1, 1)
    assert shell.json("policy", "test", "ask")["answered"] == 0


def test_a_folder_is_shown_then_trusted_listed_and_distrusted(bridle: Said, tmp_path: Path) -> None:
    app = tmp_path / "elsewhere" / "app"
    (app / ".claude").mkdir(parents=True)
    assert "brings nothing that would need trust" in bridle("trust", str(app))
    settings = {"env": {"A": "b"}, "permissions": {"deny": ["Bash(rm:*)"]}}
    (app / ".claude" / "settings.json").write_text(json.dumps(settings))
    said = bridle("trust", str(app), code=2)
    assert "nobody can be asked" in said
    survey = json.loads(bridle("trust", str(app), "--json"))
    assert survey["is_trusted"] is False
    assert [one["what"] for one in survey["brings"]] == ["env"]
    said = bridle("trust", "add", str(app), "--yes")
    assert "env (" in said
    assert "holds in any case: deny Bash(rm:*)" in said
    assert said.endswith(f"{app} is trusted, with just that\n")
    assert "It is trusted already." in bridle("trust", str(app), "--yes")
    (trusted,) = json.loads(bridle("trust", "list", "--json"))
    assert trusted["folder"] == str(app)
    assert str(app) in bridle("trust", "list")
    assert bridle("trust", "remove", str(app)) == f"{app} is not trusted any more\n"
    assert json.loads(bridle("trust", "list", "--json")) == []
    assert "never was trusted" in bridle("trust", "remove", "/tmp", code=4)


def test_git_is_asked_about_where_a_repository_brings_programs_until_it_is_trusted(
    bridle: Said, tmp_path: Path
) -> None:
    app = tmp_path / "app"
    app.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=app, check=True)
    subprocess.run(["git", "config", "core.fsmonitor", "./x"], cwd=app, check=True)
    words = ("policy", "explain", "git status", "--policy", "edits", "--cwd", str(app))
    assert "git would run core.fsmonitor" in bridle(*words)
    assert "core.fsmonitor" in bridle("trust", str(app), "--yes")
    assert bridle(*words).startswith("Allowed")


# --- what may be delegated, and what is for people alone

WHOLE = """\
preset = "edits"
human_only = ["Bash(git push:*)"]
[[delegate]]
rules = ["Bash(npm test:*)", "Edit(./src/**)"]
count = 20
seconds = 3600
paths = ["./packages/**"]
[[delegate]]
rules = ["Read"]
"""


def test_a_policy_shows_what_may_be_delegated_and_what_is_for_people_alone(
    bridle: Said, tmp_path: Path
) -> None:
    (tmp_path / "team.toml").write_text(WHOLE)
    shown = bridle("policy", "show", "team.toml")
    assert "human only" in shown
    assert "Bash(git push:*)" in shown
    assert "20 times, for 3600 seconds, in ./packages/**" in shown
    told = json.loads(bridle("policy", "show", "team.toml", "--json"))
    assert told["human_only"] == ["Bash(git push:*)"]
    assert [one["rules"] for one in told["delegate"]] == [
        ["Bash(npm test:*)", "Edit(./src/**)"],
        ["Read"],
    ]
    assert json.loads(bridle("policy", "show", "ask", "--json"))["delegate"] is None
    (tmp_path / "none.toml").write_text("delegate = []")
    assert "nothing" in bridle("policy", "show", "none.toml")


@pytest.mark.parametrize("text", [WHOLE, 'human_only = ["mcp__bank"]\ndelegate = []'])
def test_a_kept_policy_that_gets_another_rule_keeps_the_rest(
    bridle: Said, tmp_path: Path, text: str
) -> None:
    (tmp_path / "team.toml").write_text(text)
    bridle("policy", "add", "team", "team.toml")
    bridle("policy", "add", "team", "--allow", "Bash(ls:*)")
    before = parse_policy(text, "x")
    after = json.loads(bridle("policy", "show", "team", "--json"))
    rules = [*before.texts]
    assert [one["text"] for one in after["rules"]] == [*(r.text for r in rules), "Bash(ls:*)"]
    assert after["human_only"] == [rule.text for rule in before.human_only]
    assert before.delegate is not None
    assert [one.get("count") for one in after["delegate"]] == [one.count for one in before.delegate]
    assert [one.get("seconds") for one in after["delegate"]] == [
        one.seconds for one in before.delegate
    ]
    assert [one.get("paths", []) for one in after["delegate"]] == [
        list(one.paths) for one in before.delegate
    ]
