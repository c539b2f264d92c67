"""What "always" would add: narrow first, and it really allows the call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridle.policy import Call, InForce, Policy, suggest
from bridle.protocol.permissions import AddRules, PermissionRule, SetMode

from .grounds import GROUND, bash, real_ground, told


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (bash("npm test"), ["Bash(npm test)", "Bash(npm test:*)"]),
        (bash("npm run build -- -v"), ["Bash(npm run build -- -v)", "Bash(npm run:*)"]),
        (bash("docker ps"), ["Bash(docker ps)", "Bash(docker ps:*)"]),
        (bash("pytest -x tests"), ["Bash(pytest -x tests)", "Bash(pytest:*)"]),
        (bash("ls && docker ps"), ["Bash(ls && docker ps)"]),
        (bash("eval x"), []),
        (Call("Edit", {"file_path": "src/a.py"}), ["Edit(/src/a.py)", "Edit(/src/**)"]),
        (
            Call("Write", {"file_path": "/home/me/app/src/a.py"}),
            ["Edit(/src/a.py)", "Edit(/src/**)"],
        ),
        (Call("Read", {"file_path": "/etc/hosts"}), ["Read(//etc/hosts)", "Read(//etc/**)"]),
        (Call("WebFetch", {"url": "https://A.com/x"}), ["WebFetch(domain:a.com)"]),
        (Call("mcp__a__b", {"x": 1}), ["mcp__a__b"]),
        (Call("Skill", {"skill": "pdf"}), ["Skill(pdf)"]),
        (Call("WebSearch", {"query": "x"}), ["WebSearch"]),
        (Call("ExitPlanMode", {"plan": "x"}), []),
        (Call("AskUserQuestion", {"questions": []}), []),
        (bash(None), []),
        (bash(""), []),
        (Call("Edit", {"file_path": 1}), []),
        (Call("WebFetch", {"url": "https://a@b.com"}), []),
    ],
)
def test_the_narrowest_rule_comes_first(call: Call, expected: list[str]) -> None:
    assert suggest(call, GROUND) == expected


COMMANDS = [
    *("npm test", "docker ps -a", "make", "python x.py", "python -m pytest -q", "ls -la 'a b'"),
    *('git commit -m "a b"', "git commit -m 'a; b'", "echo 'f(1)'", r"echo a\ b", "echo '*'"),
    *("npm test > out.txt", "npm test 2>&1 | tee log", "timeout 60 npm test", "sudo docker ps"),
    *("bash -c 'npm test'", "env CI=1 npm test", "xargs docker", "find . -exec docker {} +"),
    *(
        "cd src && docker ps",
        "docker ps; docker images",
        "FOO=1 docker ps",
        "for f in *; do x; done",
    ),
    *("docker ps $x", "$x", "eval x", "source x.sh", "git -C sub push", "git --no-pager push"),
    *("docker ps # list", "docker\nps", "  docker ps  ", "cat <<'E'\nx\nE", "a:*", "docker ps:*"),
    *("docker 'ps", "echo it\\'s", "docker ps &", "/usr/bin/docker ps", "./x.sh a", "rm -rf build"),
    *("nohup docker ps", "time docker ps", "[ -f x ] && docker ps", "true", "x=1", "> out.txt"),
]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_suggestion_allows_the_command_once_it_is_remembered(command: str) -> None:
    call = bash(command)
    for rule in suggest(call, GROUND):
        force = InForce(Policy(), GROUND)
        force.remember(rule)
        assert told(force.judge(call)) == "allow", rule


@pytest.mark.parametrize(
    "path",
    [
        *("a.py", "src/a.py", "/home/me/app/src/a.py", "../x", "~/x", "/etc/x", "/x", "src/../b"),
        *(
            "a b.py",
            "ü/ñ.py",
            "a'b",
            'a"b',
            "a\\b",
            "a\\\\b",
            "!a",
            "a!b",
            "~a",
            "./a",
            "a#b",
            " a ",
        ),
        *("a{b}", "a$b", "a:b", "src//a", "src/"),
    ],
)
@pytest.mark.parametrize("tool", ["Edit", "Write"])
def test_every_suggestion_allows_the_edit_once_it_is_remembered(tool: str, path: str) -> None:
    call = Call(tool, {"file_path": path})
    for rule in suggest(call, GROUND):
        force = InForce(Policy(), GROUND)
        force.remember(rule)
        assert told(force.judge(call)) == "allow", rule


def test_a_suggestion_for_a_link_allows_what_it_leads_to(tmp_path: Path) -> None:
    folder = tmp_path / "app"
    (folder / "real").mkdir(parents=True)
    (folder / "link").symlink_to("real")
    ground = real_ground(folder)
    call = Call("Edit", {"file_path": "link/a"})
    for rule in suggest(call, ground):
        force = InForce(Policy(), ground)
        force.remember(rule)
        assert told(force.judge(call)) == "allow", rule


@given(st.text(alphabet="ab/. *?[]()\\'\"!~$:{}\n", min_size=1, max_size=10))
def test_a_suggestion_for_any_path_allows_it(path: str) -> None:
    call = Call("Edit", {"file_path": path})
    for rule in suggest(call, GROUND):
        force = InForce(Policy(), GROUND)
        force.remember(rule)
        assert told(force.judge(call)) == "allow", rule


@given(st.text(alphabet="ab -;&|'\"\\()$*:\n", min_size=1, max_size=12))
def test_the_narrowest_suggestion_for_any_command_allows_it_and_nothing_longer(text: str) -> None:
    call = bash(text)
    for rule in suggest(call, GROUND)[:1]:
        force = InForce(Policy(), GROUND)
        force.remember(rule)
        assert told(force.judge(call)) == "allow", rule
        assert told(force.judge(bash(f"{text.strip()}\ndocker"))) != "allow", rule


def test_with_hidden_files_too_a_suggestion_is_worth_its_word() -> None:
    policy = Policy(deny=["Read(/secrets/**)"])
    for command in ("cat $x", "docker ps *", 'python "$x"'):
        call = bash(command)
        assert told(policy.on(GROUND).judge(call)) == "ask"
        for rule in suggest(call, GROUND, policy=policy):
            force = InForce(policy, GROUND)
            force.remember(rule)
            assert told(force.judge(call)) == "allow", (command, rule)


def test_the_guard_still_asks_about_what_was_remembered() -> None:
    call = Call("Edit", {"file_path": ".claude/settings.json"})
    force = InForce(Policy(), GROUND)
    for rule in suggest(call, GROUND):
        force.remember(rule)
    assert told(force.judge(call)) == "guard"


def test_the_clis_own_suggestions_come_last_and_only_if_they_are_rules_that_allow() -> None:
    def add(behavior: Any, *rules: PermissionRule) -> AddRules:
        return AddRules(rules=list(rules), behavior=behavior, destination="session")

    updates = [
        add("allow", PermissionRule("Bash", "npm test:*"), PermissionRule("Bash", "npm:*")),
        add("allow", PermissionRule("Bash", "npm 'x"), PermissionRule("bash")),
        add("deny", PermissionRule("Bash", "npm publish:*")),
        SetMode(mode="acceptEdits", destination="session"),
        "something else",
    ]
    found = suggest(bash("npm test"), GROUND, updates)
    assert found == ["Bash(npm test)", "Bash(npm test:*)", "Bash(npm:*)"]


@pytest.mark.parametrize("command", ["sudo docker ps", "bash x.sh", "python x.py", "rm -rf build"])
def test_no_suggestion_is_for_the_whole_shell(command: str) -> None:
    found = suggest(bash(command), GROUND)
    assert "Bash" not in found
    assert "Bash(*)" not in found


def test_a_long_command_is_not_made_a_rule() -> None:
    assert suggest(bash("echo " + "x" * 5000), GROUND) == []


def test_a_file_at_the_root_does_not_suggest_the_whole_disk() -> None:
    assert "Read(//**)" not in suggest(Call("Read", {"file_path": "/x"}), GROUND)
