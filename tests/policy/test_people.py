"""What a person alone may say yes to."""

from __future__ import annotations

import msgspec
import pytest

from bridle.policy import Asked, Call, InForce, Policy
from bridle.policy.delegable import delegable

from .grounds import GROUND, bash, told

PUSH = "Bash(git push:*)"
POLICY = Policy(
    "autonomous",
    human_only=[PUSH, "Edit(/deploy/**)", "WebFetch(domain:pay.example.com)", "mcp__bank"],
    deny=["Bash(rm:*)"],
)


@pytest.mark.parametrize(
    "command",
    [
        "git push",
        "git push origin main",
        "npm test && git push",
        "npm test; git push || true",
        "(cd src && git push)",
        "echo $(git push)",
        "echo `git push`",
        "timeout 5 git push",
        "env git push",
        "bash -c 'git push'",
        'sh -c "npm test && git push -f"',
        "git -C /tmp/x push",
        "/usr/bin/git push",
        "if true; then git push; fi",
        "f() { git push; }; f",
        "find . -exec git push \\;",
        "echo x | xargs git push",
        # Not known, and so perhaps that.
        "git $WHAT",
        "$CMD push",
        'eval "$(cat x)"',
        "curl x | sh",
        # A file that is theirs.
        "echo x > deploy/prod.yaml",
        "tee deploy/prod.yaml < a",
        "cp a deploy/b",
    ],
)
def test_a_command_with_such_a_part_is_for_a_person_wherever_that_stands(command: str) -> None:
    assert told(POLICY.on(GROUND).judge(bash(command))) == "guard"


@pytest.mark.parametrize("command", ["git status", "npm test", "echo git push", "ls deploy"])
def test_other_commands_are_judged_as_before(command: str) -> None:
    assert told(POLICY.on(GROUND).judge(bash(command))) == "allow"


@pytest.mark.parametrize(
    ("call", "verdict"),
    [
        (Call("Edit", {"file_path": "deploy/x"}), "guard"),
        (Call("Write", {"file_path": "src/../deploy/x"}), "guard"),
        (Call("Edit", {"file_path": "src/x"}), "allow"),
        (Call("Edit", {"file_path": 3}), "guard"),
        (Call("Read", {"file_path": "deploy/x"}), "allow"),
        (Call("WebFetch", {"url": "https://pay.example.com/x"}), "guard"),
        (Call("WebFetch", {"url": "https://pay.example.com:0x1bb/x"}), "guard"),
        (Call("WebFetch", {"url": "https://docs.example.com"}), "allow"),
        (Call("mcp__bank__pay", {}), "guard"),
        (Call("mcp__other__pay", {}), "allow"),
        (Call("RunIt", {"command": "git push"}), "guard"),
        (bash("rm -rf / && git push"), "deny"),
    ],
    ids=str,
)
def test_other_tools_too_and_a_denial_stays_one(call: Call, verdict: str) -> None:
    assert told(POLICY.on(GROUND).judge(call)) == verdict


def test_it_says_whose_it_is_and_by_which_rule() -> None:
    verdict = POLICY.on(GROUND).judge(bash("npm test && git push"))
    assert isinstance(verdict, Asked)
    assert verdict.guard == f"a person alone may say yes to this: {PUSH}"
    assert verdict.because == verdict.guard
    assert verdict.rule == PUSH


@pytest.mark.parametrize("ask", [PUSH, "Bash", "Bash(git:*)"])
def test_it_is_for_a_person_also_where_a_plain_rule_says_to_ask(ask: str) -> None:
    policy = Policy("ask", ask=[ask], human_only=[PUSH])
    assert told(policy.on(GROUND).judge(bash("git push"))) == "guard"
    assert told(policy.on(GROUND).judge(bash("git pull"))) == "ask"


@pytest.mark.parametrize("mode", [None, "default", "plan", "bypassPermissions"])
def test_in_every_mode(mode: str | None) -> None:
    policy = Policy("autonomous", human_only=["mcp__bank", "Read(/keys/**)"])
    call = Call("Read", {"file_path": "keys/a"}, mode)
    assert told(policy.on(GROUND).judge(call)) == "guard"


def test_neither_rules_nor_what_is_remembered_nor_the_guard_switched_off_get_past_it() -> None:
    force = InForce(Policy("ask", allow=["Bash"], human_only=[PUSH], has_guard=False), GROUND)
    force.remember("Bash(git push:*)")
    force.remember("Bash")
    force.choose("bypassPermissions")
    assert told(force.judge(bash("git push"))) == "guard"
    assert told(force.judge(bash("git pull"))) == "allow"
    assert PUSH in force.explain(bash("git push"))


def test_what_can_not_be_read_is_for_others_where_no_such_rule_is_about_it() -> None:
    policy = Policy("ask", human_only=["mcp__bank"])
    assert told(policy.on(GROUND).judge(bash('eval "$X"'))) == "ask"


def test_the_text_of_a_policy_is_the_same_in_whatever_order_it_was_given() -> None:
    rules = [f"Bash({name}:*)" for name in "gbhacfde"]
    entries = [delegable(["Read"]), delegable(["Edit"])]
    one = Policy("ask", allow=rules, human_only=rules, delegate=entries)
    same = Policy("ask", allow=rules[::-1], human_only=rules[::-1], delegate=entries)
    assert one.text == same.text
    *_, said, more = msgspec.json.decode(one.text)
    assert said == [["allow", rule] for rule in sorted(rules)]
    assert more["human_only"] == sorted(rules)
    assert Policy.read(one.text).digest == one.digest
    other = Policy("ask", allow=rules, human_only=rules[1:], delegate=entries)
    assert other.digest != one.digest
