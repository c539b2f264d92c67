"""What is in force for one agent, and how a person changes it."""

from __future__ import annotations

import pytest

from bridle.errors import InvalidPolicy, InvalidRule
from bridle.policy import Call, InForce, Policy
from bridle.policy.rules import parse_rule

from .grounds import GROUND, bash, told


def edit(path: str = "src/a.py") -> Call:
    return Call("Edit", {"file_path": path})


def test_a_remembered_rule_allows_from_then_on_and_can_be_taken_back() -> None:
    force = InForce(Policy(), GROUND)
    assert told(force.judge(bash("ls -la"))) == "ask"
    force.remember("Bash(ls:*)")
    assert told(force.judge(bash("ls -la"))) == "allow"
    assert "remembered" in force.explain(bash("ls"))
    assert [text.source for text in force.policy.texts] == ["remembered"]
    force.forget(" Bash(ls:*) ")
    assert told(force.judge(bash("ls -la"))) == "ask"
    assert force.policy.rules == ()


def test_what_is_remembered_twice_is_forgotten_at_once() -> None:
    force = InForce(Policy(), GROUND)
    force.remember("Bash(ls:*)")
    force.remember("Bash(ls:*)")
    force.forget("Bash(ls:*)")
    assert told(force.judge(bash("ls"))) == "ask"


def test_a_rule_of_the_policy_itself_can_not_be_forgotten() -> None:
    force = InForce(Policy(allow=["Bash(ls:*)"], deny=["Bash(rm:*)"]), GROUND)
    force.forget("Bash(ls:*)")
    force.forget("Bash(rm:*)")
    force.forget("Bash(never:*)")
    assert told(force.judge(bash("ls"))) == "allow"
    assert told(force.judge(bash("rm x"))) == "deny"


def test_what_is_no_rule_is_not_remembered_and_changes_nothing() -> None:
    force = InForce(Policy(allow=["Bash(ls:*)"]), GROUND)
    digest = force.policy.digest
    with pytest.raises(InvalidRule):
        force.remember("Bash(")
    assert force.policy.digest == digest
    assert told(force.judge(bash("ls"))) == "allow"


def test_what_is_remembered_opens_no_denial_no_question_and_no_guard() -> None:
    force = InForce(Policy(deny=["Bash(rm:*)"], ask=["Bash(git push:*)"]), GROUND)
    force.remember("Bash")
    assert told(force.judge(bash("rm x"))) == "deny"
    assert told(force.judge(bash("git push"))) == "ask"
    assert told(force.judge(bash("echo x > .claude/settings.json"))) == "guard"
    assert told(force.judge(bash("docker ps"))) == "allow"


@pytest.mark.parametrize(
    ("mode", "edits", "commands"),
    [
        ("acceptEdits", "allow", "ask"),
        ("bypassPermissions", "allow", "allow"),
        ("default", "ask", "ask"),
    ],
)
@pytest.mark.parametrize("base", ["ask", "plan"])
def test_a_chosen_mode_holds_after_the_plan(
    base: str, mode: str, edits: str, commands: str
) -> None:
    force = InForce(Policy("plan" if base == "plan" else "ask"), GROUND)
    force.choose(mode)
    assert told(force.judge(edit())) == edits
    assert told(force.judge(bash("npm install"))) == commands


def test_asking_for_each_can_be_chosen_under_an_autonomous_policy() -> None:
    force = InForce(Policy("autonomous"), GROUND)
    force.choose("default")
    assert told(force.judge(edit())) == "ask"


def test_a_chosen_mode_keeps_rules_and_what_was_remembered() -> None:
    force = InForce(Policy(deny=["Edit(/gen/**)"]), GROUND)
    force.remember("Bash(make:*)")
    force.choose("acceptEdits")
    assert told(force.judge(edit("gen/x"))) == "deny"
    assert told(force.judge(bash("make"))) == "allow"
    force.choose("default")
    assert told(force.judge(edit())) == "ask"
    assert told(force.judge(bash("make"))) == "allow"


def test_another_policy_is_applied_with_what_was_remembered() -> None:
    force = InForce(Policy(allow=["Bash(ls:*)"]), GROUND)
    force.remember("Bash(make:*)")
    force.choose("acceptEdits")
    force.apply(Policy("read-only", deny=["Bash(cat:*)"]))
    assert told(force.judge(bash("make"))) == "allow"
    assert told(force.judge(bash("cat x"))) == "deny"
    assert told(force.judge(edit())) == "deny"
    assert force.policy.preset == "read-only"
    assert all(rule.text != "Bash(ls:*)" for rule in force.policy.rules)


def test_the_same_words_have_the_same_hash_wherever_they_are_written() -> None:
    one = Policy("edits", allow=["Bash(ls:*)", "Read"], deny=["Edit(/x)"])
    two = Policy("edits", allow=["Read", "Bash(ls:*)", "Read"], deny=[" Edit(/x) "])
    assert one.digest == two.digest
    remembered = InForce(Policy("edits", allow=["Read"], deny=["Edit(/x)"]), GROUND)
    remembered.remember("Bash(ls:*)")
    assert remembered.policy.digest == one.digest
    others = [
        Policy("ask", allow=["Bash(ls:*)", "Read"], deny=["Edit(/x)"]),
        Policy("edits", allow=["Bash(ls:*)"], deny=["Edit(/x)"]),
        Policy("edits", allow=["Bash(ls:*)", "Read"], ask=["Edit(/x)"]),
        Policy("edits", allow=["Bash(ls:*)", "Read"], deny=["Edit(/x)"], has_guard=False),
    ]
    assert len({one.digest, *(other.digest for other in others)}) == 5


def test_a_policy_does_not_change_when_another_is_made_of_it() -> None:
    policy = Policy(allow=["Bash(ls:*)"])
    before = policy.digest
    policy.with_preset("edits")
    policy.with_rules(*Policy(deny=["Bash"]).rules)
    policy.without(policy.rules[0])
    assert policy.digest == before


def test_another_policy_keeps_what_takes_rights_away_and_guards_its_own_files() -> None:
    force = InForce(Policy(), GROUND)
    force.add_rules([parse_rule("Bash(rm:*)", "deny", "folder"), parse_rule("Bash(ls)", "allow")])
    force.apply(Policy("autonomous", files=["/etc/team.toml"]))
    assert told(force.judge(bash("rm x"))) == "deny"
    assert [rule.text for rule in force.policy.rules] == ["Bash(rm:*)"]
    assert force.ground.guarded == ("/etc/team.toml",)


def test_a_policy_that_can_not_be_put_on_its_ground_changes_nothing() -> None:
    broken = Policy("autonomous", files=["/etc/team.toml"])
    broken.rules = ("no rule",)  # type: ignore[assignment]
    force = InForce(Policy("ask", files=["/etc/ask.toml"]), GROUND)
    before = force.policy, force.base, force.ground
    with pytest.raises(InvalidPolicy):
        force.apply(broken)
    with pytest.raises(InvalidPolicy):
        force.add_rules(broken.rules)
    assert (force.policy, force.base, force.ground) == before
    assert told(force.judge(bash("rm x"))) == "ask"


def test_a_mode_that_was_chosen_under_another_policy_is_not_gone_on_with() -> None:
    force = InForce(Policy("read-only"), GROUND)
    force.go_on("autonomous", [], Policy("ask").digest)
    assert str(force.policy.preset) == "read-only"
    force.go_on("plan", [], Policy("read-only").digest)
    assert str(force.policy.preset) == "plan"
