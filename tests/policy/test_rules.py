"""Rules in Claude Code's syntax: what is one, what is none and why."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridle.errors import InvalidRule
from bridle.policy import Call, Policy, parse_rule
from bridle.policy.rules import host_of

from .grounds import GROUND, bash, told


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "Tool"),
        ("   ", "Tool"),
        ("(x)", "Tool"),
        ("Bash(x", "Tool"),
        ("Bash x", "Tool"),
        ("Bash)", "Tool"),
        ("Bash(x) y", "Tool"),
        ("Bash(x)(y", "Tool"),
        ("1Bash", "Tool"),
        ("!Bash", "Tool"),
        ("*", "Tool"),
        ("Bash()", "parentheses"),
        ("Bash(  )", "parentheses"),
        ("Read()", "parentheses"),
        ("bash", "Bash"),
        ("BASH(ls)", "Bash"),
        ("webfetch(domain:x.com)", "WebFetch"),
        ("Bas*", "MCP"),
        ("Bash(:*)", "empty"),
        ("Bash(a:* b)", "end"),
        ("Bash(echo 'x)", "quote"),
        ("Read(!x)", "negated"),
        ("Read(../x)", ".."),
        ("Edit(/a/../b)", ".."),
        ("Read(a\0b)", "path"),
        ("WebFetch(example.com)", "domain"),
        ("WebFetch(https://example.com)", "domain"),
        ("WebFetch(domain:)", "domain"),
        ("WebFetch(domain:a b)", "domain"),
        ("WebFetch(domain:a/b)", "domain"),
        ("WebFetch(domain:*.*.com)", "domain"),
        ("WebFetch(domain:a@b)", "domain"),
        ("WebSearch(x)", "parentheses"),
        ("TodoWrite(x)", "parentheses"),
        ("ExitPlanMode(x)", "parentheses"),
        ("mcp__", "mcp__server"),
        ("mcp__*", "mcp__server"),
        ("mcp__a(x)", "parentheses"),
        ("mcp__a__b(x)", "parentheses"),
        ("Task(a*b)", "name"),
        ("Skill(*x)", "name"),
    ],
)
def test_a_wrong_rule_is_refused_with_a_reason(text: str, reason: str) -> None:
    with pytest.raises(InvalidRule) as caught:
        parse_rule(text, "allow")
    assert reason in caught.value.reason
    assert caught.value.rule == text


@pytest.mark.parametrize("given", [None, 1, 1.5, True, [], {}, ["Bash"]])
def test_what_is_not_text_is_no_rule(given: Any) -> None:
    with pytest.raises(InvalidRule, match="a rule is text"):
        parse_rule(given, "deny")


@pytest.mark.parametrize(
    "text",
    [
        *("Bash", "Bash(*)", " Bash ", "Bash( ls )", "Bash(npm run test:*)", "Bash(git diff *)"),
        *(
            "Read",
            "Read(*)",
            "Read(./secrets/**)",
            "Read(~/.ssh/**)",
            "Read(//etc/**)",
            "Read(.env)",
        ),
        *("Edit(/src/**)", "Edit(*.py)", "Write(/x)", "MultiEdit(/x)", "NotebookEdit(/x)"),
        *("Grep(/x)", "Glob(/x)", "LS(/x)", "NotebookRead(/x)"),
        *("WebFetch", "WebFetch(domain:example.com)", "WebFetch(domain:*.example.com)"),
        *("WebFetch(domain: EXAMPLE.com.)", "WebSearch", "mcp__a", "mcp__a__b", "mcp__a__*"),
        *("mcp__a__get_*", "mcp__a-b.c__d", "mcp__a(*)", "Task(Explore)", "Agent(x)"),
        *("Skill(a:*)", "SlashCommand(/commit:*)", "SomeNewTool", "KillShell"),
    ],
)
def test_a_right_rule_is_read(text: str) -> None:
    rule = parse_rule(text, "ask", "here")
    assert (rule.text, rule.behavior, rule.source) == (text.strip(), "ask", "here")


@given(st.text())
def test_any_text_is_a_rule_or_is_refused(text: str) -> None:
    try:
        rule = parse_rule(text, "deny")
    except InvalidRule:
        return
    Policy(rules=[rule]).on(GROUND).judge(bash("ls"))


@given(st.sampled_from(["Bash", "Read", "Edit", "WebFetch", "Task"]), st.text(max_size=20))
def test_any_content_is_a_pattern_or_is_refused(tool: str, content: str) -> None:
    try:
        rule = parse_rule(f"{tool}({content})", "deny")
    except InvalidRule:
        return
    judge = Policy("autonomous", rules=[rule]).on(GROUND)
    for call in (bash(f"cat {content}"), Call("Read", {"file_path": content or "x"})):
        judge.judge(call)


def test_parentheses_and_backslashes_may_be_escaped() -> None:
    policy = Policy(allow=[r"Bash(node -e 'f\(1\)')", r"Bash(echo 'a\\b')"])
    judge = policy.on(GROUND)
    assert told(judge.judge(bash("node -e 'f(1)'"))) == "allow"
    assert told(judge.judge(bash(r"echo 'a\b'"))) == "allow"
    assert told(judge.judge(bash("node -e 'f(2)'"))) == "ask"


@pytest.mark.parametrize(
    ("rule", "tool", "is_for"),
    [
        ("mcp__a", "mcp__a__b", True),
        ("mcp__a", "mcp__ab__c", False),
        ("mcp__a", "mcp__a", True),
        ("mcp__a__b", "mcp__a__b", True),
        ("mcp__a__b", "mcp__a__bc", False),
        # A rule for one tool is for no other.
        ("mcp__a__b", "mcp__a__b__c", False),
        ("mcp__a__*", "mcp__a__b", True),
        ("mcp__a__get_*", "mcp__a__get_x", True),
        ("mcp__a__get_*", "mcp__a__set_x", False),
        ("Read", "Grep", True),
        ("Read", "Glob", True),
        ("Read", "NotebookRead", True),
        ("Read", "Edit", False),
        ("Edit", "Write", True),
        ("Edit", "MultiEdit", True),
        ("Edit", "NotebookEdit", True),
        ("Edit", "Read", False),
        ("Write", "Edit", False),
        ("Task", "Agent", True),
        ("Agent", "Task", True),
        ("Bash", "BashOutput", False),
        ("bashful", "Bash", False),
    ],
)
def test_a_rule_speaks_of_the_tools_that_it_names(rule: str, tool: str, is_for: bool) -> None:
    assert parse_rule(rule, "allow").is_for(tool) is is_for


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://example.com", "example.com"),
        ("http://example.com/", "example.com"),
        ("https://EXAMPLE.com/x", "example.com"),
        ("https://example.com./x", "example.com"),
        ("https://example.com:8080/x?y#z", "example.com"),
        ("https://example.com?x=@evil.com", "example.com"),
        ("https://example.com#@evil.com", "example.com"),
        ("https://evil.com/@example.com", "evil.com"),
        ("example.com/x", "example.com"),
        ("https://example.com.evil.com/", "example.com.evil.com"),
        ("https://example.com@evil.com/", None),
        ("https://example.com:80@evil.com/", None),
        ("https://user:pass@example.com/", None),
        ("https://example.com\\@evil.com/", None),
        ("https://example.com\\.evil.com/", None),
        ("https:\\\\example.com", None),
        ("https://evil.com%2f.example.com/", None),
        ("https://ex\u0430mple.com/", None),
        ("https://example\u3002com/", None),
        ("https://example.com\u2044x.evil.com", None),
        ("https://example.com\n.evil.com/", None),
        ("https://exa\tmple.com/", None),
        (" https://example.com/", None),
        ("https://[::1]/", None),
        ("//example.com/", None),
        ("file:///etc/passwd", None),
        ("https://", None),
        ("", None),
        (None, None),
        (1, None),
        (["https://example.com"], None),
    ],
)
def test_a_host_is_known_only_from_a_plain_url(url: object, host: str | None) -> None:
    assert host_of(url) == host


def fetch(url: str) -> Call:
    return Call("WebFetch", {"url": url, "prompt": "x"})


def test_a_domain_is_matched_by_itself_and_below_only_if_asked_for() -> None:
    judge = Policy(allow=["WebFetch(domain:a.com)", "WebFetch(domain:*.b.com)"]).on(GROUND)
    assert told(judge.judge(fetch("https://a.com/x"))) == "allow"
    assert told(judge.judge(fetch("https://x.a.com/"))) == "ask"
    assert told(judge.judge(fetch("https://ba.com/"))) == "ask"
    assert told(judge.judge(fetch("https://x.y.b.com/"))) == "allow"
    assert told(judge.judge(fetch("https://b.com/"))) == "ask"
    assert told(judge.judge(fetch("https://xb.com/"))) == "ask"


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.com/",
        "http://EVIL.com:80",
        "evil.com",
        "HTTPS://evil.com/",
        "https://me@evil.com/",
        "https://evil.com\\x",
        "//evil.com",
        " https://evil.com",
        "https://evil\u3002com/",
        "https:/evil.com/",
        "https://evil%2ecom/",
    ],
)
@pytest.mark.parametrize("preset", ["ask", "autonomous"])
def test_no_spelling_of_a_denied_domain_is_allowed(url: str, preset: Any) -> None:
    allow = ["WebFetch"] if preset == "ask" else []
    judge = Policy(preset, allow=allow, deny=["WebFetch(domain:evil.com)"]).on(GROUND)
    assert told(judge.judge(fetch(url))) != "allow"


def test_a_name_is_matched_whole_or_by_its_beginning() -> None:
    judge = Policy(allow=["Skill(pdf)", "Skill(web-:*)"], deny=["Task(root)"]).on(GROUND)
    assert told(judge.judge(Call("Skill", {"skill": "pdf"}))) == "allow"
    assert told(judge.judge(Call("Skill", {"skill": "pdf2"}))) == "ask"
    assert told(judge.judge(Call("Skill", {"skill": "web-x"}))) == "allow"
    assert told(judge.judge(Call("Skill", {"skill": ["pdf"]}))) == "ask"
    assert told(judge.judge(Call("Task", {"subagent_type": "root"}))) == "deny"
    assert told(judge.judge(Call("Agent", {"subagent_type": "root"}))) == "deny"
    assert told(judge.judge(Call("Task", {"subagent_type": "other"}))) == "allow"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Raed", "the tool is called Read"),
        ("Bsh(ls)", "the tool is called Bash"),
        ("Edit(/src/{a,b}.py)", "braces"),
    ],
)
def test_a_rule_that_would_mean_nothing_is_refused(text: str, reason: str) -> None:
    with pytest.raises(InvalidRule, match=reason):
        parse_rule(text, "deny")


def test_a_rule_can_only_allow_ask_or_deny() -> None:
    with pytest.raises(InvalidRule, match="allow, ask or deny"):
        parse_rule("Bash(ls)", "alow")  # type: ignore[arg-type]
