"""Policy files and Claude's settings: every mistake is refused, with its line."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridle.errors import InvalidPolicy
from bridle.policy import Policy, parse_policy, parse_settings
from bridle.policy.files import MAX_INCLUDES

from .grounds import GROUND, bash, told

WHOLE = """\
# The team's policy: what deny = means is in the docs
preset = "edits"      # edits inside of the folder pass
guard = true

allow = [
  "Bash(npm test:*)", # quick
  'Bash(echo "x":*)',
]
ask = ["Bash(git push:*)"]
deny = ["Read(./secrets/**)"]
"""


def reading(files: dict[str, str]) -> Callable[[str], str]:
    def read(path: str) -> str:
        if path not in files:
            raise FileNotFoundError(2, "No such file", path)
        return files[path]

    return read


def refused(text: str, files: dict[str, str] | None = None) -> InvalidPolicy:
    read = None if files is None else reading(files)
    with pytest.raises(InvalidPolicy) as caught:
        parse_policy(text, "/p/policy.toml", read)
    return caught.value


def test_a_whole_file_is_read_with_where_each_rule_stands() -> None:
    policy = parse_policy(WHOLE, "team.toml")
    assert (policy.preset, policy.has_guard) == ("edits", True)
    assert {(rule.behavior, rule.text): rule.source for rule in policy.rules} == {
        ("allow", "Bash(npm test:*)"): "team.toml:6",
        ("allow", 'Bash(echo "x":*)'): "team.toml:7",
        ("ask", "Bash(git push:*)"): "team.toml:9",
        ("deny", "Read(./secrets/**)"): "team.toml:10",
    }
    assert "team.toml:6" in policy.on(GROUND).explain(bash("npm test"))


def test_an_empty_file_is_the_default_policy() -> None:
    for text in ("", "# nothing\n", "allow = []"):
        assert parse_policy(text, "x").digest == Policy().digest


def test_the_same_words_from_a_file_have_the_same_hash() -> None:
    rules = ["Bash(ls:*)", "Read"]
    policy = parse_policy(f"allow = {json.dumps(rules)}", "x")
    assert policy.digest == Policy(allow=rules[::-1]).digest


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("preset = ", 1, "value"),
        ('\nallow = ["Bash(ls)"', 2, ""),
        ("a = 1\n", 1, "no such key 'a'"),
        ('# x\n\nalow = ["Bash"]', 3, "alow"),
        ('[allow]\nBash = "ls"', 1, "list"),
        ('preset = "yolo"', 1, "yolo"),
        ("preset = 1", 1, "1"),
        ('preset = ["ask"]', 1, "ask"),
        ('guard = "no"', 1, "true or false"),
        ("guard = 0", 1, "true or false"),
        ('allow = "Bash"', 1, "list"),
        ("deny = 1", 1, "list"),
        ("\n\nask = {x = 1}", 3, "list"),
        ('include = "x.toml"', 1, "list"),
        ("include = [1]", 1, "list"),
        ('include = [""]', 1, "list"),
        ('allow = [\n  "Bash(ls)",\n  "Bash(",\n]', 3, "Tool"),
        ('allow = ["Bash(ls)"]\ndeny = ["bash(rm)"]', 2, "Bash"),
        ("allow = ['Read(../x)']", 1, ".."),
        ('allow = ["Bash(ls)"]\nallow = ["Bash(rm)"]', 2, ""),
        # Words in comments are not where the mistake is
        ('# preset: one of five\n\npreset = "yolo"', 3, "yolo"),
        ('# guard = "no"\nguard = "no"', 2, "true or false"),
        ('# "Bash(" was wrong\nallow = [\n  "Bash(",\n]', 3, "Tool"),
        ("# alow is not a key\nalow = []", 2, "alow"),
        ('allow = ["Bash(deny)"]\ndeny = 1', 2, "list"),
    ],
)
def test_a_mistake_is_refused_with_its_line_and_reason(text: str, line: int, reason: str) -> None:
    error = refused(text)
    assert (error.source, error.line) == ("/p/policy.toml", line)
    assert reason in error.reason
    assert f"/p/policy.toml:{line}" in str(error)


@pytest.mark.parametrize(
    "text", ["allow = [1]", "allow = [true]", "deny = [[]]", "ask = [2020-01-01]"]
)
def test_what_is_no_text_is_no_rule(text: str) -> None:
    assert "text" in refused(text).reason


@pytest.mark.parametrize(
    "text",
    ["a = " + "[" * 5000, "a = " + "1" * 5000, "a = 9999-99-99", "\0", "a" * 10_000, '"\\ud800"=1'],
)
def test_no_text_breaks_the_reader(text: str) -> None:
    refused(text)


@given(st.text())
def test_any_text_is_a_policy_or_is_refused(text: str) -> None:
    for parse in (parse_policy, parse_settings):
        try:
            parse(text, "x")
        except InvalidPolicy as error:
            assert str(error)  # noqa: PT017


# --- includes


def test_included_files_are_found_beside_the_file_that_names_them() -> None:
    files = {
        "/p/team/base.toml": 'include = ["deep/more.toml", "../side.toml"]\nallow = ["Bash(a:*)"]',
        "/p/team/deep/more.toml": 'allow = ["Bash(b:*)"]',
        "/p/side.toml": 'deny = ["Bash(c:*)"]',
        "/abs.toml": 'ask = ["Bash(d:*)"]',
    }
    text = 'include = ["team/base.toml", "/abs.toml"]'
    policy = parse_policy(text, "/p/policy.toml", reading(files))
    assert [rule.source for rule in policy.rules] == [
        "/p/team/base.toml:2",
        "/abs.toml:1",
        "/p/team/deep/more.toml:1",
        "/p/side.toml:1",
    ]


def test_files_that_include_each_other_are_read_once() -> None:
    files = {
        "/p/a.toml": 'include = ["policy.toml", "a.toml", "./a.toml"]\nallow = ["Bash(a)"]',
        "/p/policy.toml": "never = 'read again'",
    }
    policy = parse_policy('include = ["a.toml", "x/../a.toml"]', "/p/policy.toml", reading(files))
    assert len(policy.rules) == 1


def test_a_file_that_is_missing_is_told_with_the_line_that_names_it() -> None:
    error = refused('allow = []\ninclude = [\n  "gone.toml",\n]', {})
    assert (error.source, error.line) == ("/p/policy.toml", 3)
    assert "/p/gone.toml" in error.reason


def test_a_mistake_in_an_included_file_is_told_as_its_own() -> None:
    error = refused('include = ["a.toml"]', {"/p/a.toml": '\nallow = ["Bash("]'})
    assert (error.source, error.line) == ("/p/a.toml", 2)


def test_too_many_files_are_refused_with_the_reason() -> None:
    files = {f"/p/{n}.toml": f'include = ["{n + 1}.toml"]' for n in range(200)}
    error = refused('include = ["0.toml"]', files)
    assert f"more than {MAX_INCLUDES}" in error.reason or "too many" in error.reason


def test_without_a_reader_nothing_is_included() -> None:
    assert "include" in refused('include = ["a.toml"]').reason


def test_the_outermost_preset_holds() -> None:
    files = {"/p/a.toml": 'preset = "autonomous"'}
    assert parse_policy('include = ["a.toml"]', "/p/x", reading(files)).preset == "autonomous"
    both = parse_policy('preset = "plan"\ninclude = ["a.toml"]', "/p/x", reading(files))
    assert both.preset == "plan"


def test_an_included_file_does_not_switch_off_a_guard_that_is_asked_for() -> None:
    files = {"/p/a.toml": "guard = false"}
    policy = parse_policy('guard = true\ninclude = ["a.toml"]', "/p/x", reading(files))
    assert policy.has_guard


@pytest.mark.parametrize("included", ["", "guard = true"])
def test_the_guard_can_be_switched_off_by_the_file_itself(included: str) -> None:
    assert not parse_policy("guard = false", "x").has_guard
    read = reading({"/p/a.toml": included})
    assert not parse_policy('guard = false\ninclude = ["a.toml"]', "/p/x", read).has_guard


# --- Claude's settings


def test_the_rules_of_claudes_settings_are_read() -> None:
    text = """{
      "model": "x",
      "permissions": {
        "defaultMode": "acceptEdits",
        "allow": ["Bash(ls:*)", "Bash(echo \\"a\\":*)"],
        "deny": ["Read(./.env)"],
        "ask": ["Bash(git push:*)"]
      }
    }"""
    rules = parse_settings(text, "s.json")
    assert {(rule.behavior, rule.text): rule.source for rule in rules} == {
        ("allow", "Bash(ls:*)"): "s.json:5",
        ("allow", 'Bash(echo "a":*)'): "s.json:5",
        ("deny", "Read(./.env)"): "s.json:6",
        ("ask", "Bash(git push:*)"): "s.json:7",
    }
    judge = Policy(rules=rules).on(GROUND)
    assert told(judge.judge(bash("ls"))) == "allow"


@pytest.mark.parametrize("text", ["{}", '{"permissions": {}}', '{"hooks": {}}'])
def test_settings_without_rules_bring_none(text: str) -> None:
    assert parse_settings(text, "s.json") == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "1",
        "null",
        '{"permissions": []}',
        '{"permissions": {"allow": "Bash"}}',
        "{} x",
    ],
)
def test_wrong_settings_are_refused(text: str) -> None:
    with pytest.raises(InvalidPolicy) as caught:
        parse_settings(text, "s.json")
    assert caught.value.source == "s.json"


def test_a_wrong_rule_in_the_settings_is_refused_with_its_line() -> None:
    with pytest.raises(InvalidPolicy) as caught:
        parse_settings('{"permissions": {\n"allow": [\n"Bash(ls)",\n"Bash("\n]}}', "s.json")
    assert caught.value.line == 4


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "\ud800", '{"permissions": {"allow": ["\\ud800"]}}']
)
def test_no_settings_break_the_reader(text: str) -> None:
    with pytest.raises(InvalidPolicy):
        parse_settings(text, "s.json")


def test_a_rule_that_is_there_twice_has_the_line_of_each() -> None:
    text = 'allow = [\n  "Bash(ls)",\n  # "Bash(ls)"\n  "Bash(ls)",\n  "Bash(pwd)",\n]\n'
    policy = parse_policy(text, "p.toml")
    assert [rule.source for rule in policy.rules] == ["p.toml:2", "p.toml:4", "p.toml:5"]


def test_a_rule_that_several_entries_have_has_the_line_of_each() -> None:
    entry = '[[delegate]]\nrules = ["Read"]\n'
    policy = parse_policy(f'preset = "ask"\n{entry}# [[delegate]]\n{entry}', "p.toml")
    assert policy.delegate
    assert [one.rules[0].source for one in policy.delegate] == ["p.toml:3", "p.toml:6"]
