"""Judging calls of every tool: the order of things, the words, and what holds for any call."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridle.policy import PRESETS, Allowed, Asked, Call, Denied, Ground, InForce, Policy, suggest
from bridle.session.ground import ground_of
from tests.levels import tries
from tests.operations import operations

from .grounds import GROUND, JUDGES, POLICIES, bash, real_ground, told

TOOLS = [
    *("Bash", "Read", "Edit", "Write", "MultiEdit", "NotebookEdit", "NotebookRead", "Glob", "Grep"),
    *("LS", "WebFetch", "WebSearch", "Task", "Agent", "Skill", "SlashCommand", "TodoWrite"),
    *("AskUserQuestion", "ExitPlanMode", "KillShell", "mcp__a__b", "Unheard", "", "mcp__", "bash"),
]
FIELDS = [
    *("command", "file_path", "path", "notebook_path", "url", "skill", "subagent_type", "pattern"),
    *("prompt", "dangerouslyDisableSandbox", "x"),
]


def read(path: str) -> Call:
    return Call("Read", {"file_path": path})


def edit(path: str, mode: str | None = None) -> Call:
    return Call("Edit", {"file_path": path}, mode)


# --- the order


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (bash("ls -la"), "Bash(ls:*)"),
        (read("a/b"), "Read(/a/**)"),
        (edit("a/b"), "Edit(/a/**)"),
        (Call("WebFetch", {"url": "https://a.com/x"}), "WebFetch(domain:a.com)"),
        (Call("mcp__a__b", {}), "mcp__a__b"),
        (Call("Skill", {"skill": "x"}), "Skill(x)"),
        (Call("WebSearch", {"query": "x"}), "WebSearch"),
        (Call("Unheard", {}), "Unheard"),
        (Call("AskUserQuestion", {}), "AskUserQuestion"),
    ],
)
@pytest.mark.parametrize("preset", PRESETS)
def test_deny_beats_ask_beats_allow(call: Call, text: str, preset: Any) -> None:
    both = Policy(preset, allow=[text], ask=[text]).on(GROUND).judge(call)
    assert isinstance(both, Asked)
    assert both.rule == text
    all_three = Policy(preset, allow=[text], ask=[text], deny=[text]).on(GROUND).judge(call)
    assert isinstance(all_three, Denied)
    assert (all_three.rule, all_three.source) == (text, "policy")


@pytest.mark.parametrize("tool", ["Bash", "Edit", "Read", "Write", "Grep", "mcp__a__b"])
@pytest.mark.parametrize("given", [{}, {"command": 1, "file_path": 1, "path": 1}])
def test_a_denied_tool_is_denied_whatever_it_is_given(tool: str, given: dict[str, Any]) -> None:
    assert told(Policy(deny=[tool]).on(GROUND).judge(Call(tool, given))) == "deny"


def test_the_guard_speaks_before_allow_rules_and_after_deny_rules() -> None:
    call = edit(".claude/settings.json")
    assert told(Policy(allow=["Edit"]).on(GROUND).judge(call)) == "guard"
    assert told(Policy(allow=["Edit"], deny=["Edit"]).on(GROUND).judge(call)) == "deny"
    assert told(Policy(allow=["Edit"], has_guard=False).on(GROUND).judge(call)) == "allow"


@pytest.mark.parametrize("preset", ["read-only", "plan"])
def test_what_a_preset_denies_the_guard_does_not_open(preset: Any) -> None:
    judge = Policy(preset).on(GROUND)
    assert told(judge.judge(edit("src/a.py"))) == "deny"
    assert told(judge.judge(edit(".claude/settings.json"))) == "deny"


# --- redirections and path rules of the shell


@pytest.mark.parametrize("rule", ["Edit(/prod/**)", "Write(/prod/**)", "Edit", "Write"])
def test_a_redirection_is_a_write_that_can_be_denied(rule: str) -> None:
    judge = Policy(allow=["Bash"], deny=[rule]).on(GROUND)
    assert told(judge.judge(bash("echo x > prod/a"))) == "deny"
    assert told(judge.judge(bash("echo x > /dev/null"))) == "allow"


@pytest.mark.parametrize("behavior", ["deny", "ask"])
def test_what_must_not_be_edited_may_be_read(behavior: str) -> None:
    rules: dict[str, Any] = {behavior: ["Edit(/package-lock.json)"]}
    judge = Policy(allow=["Bash(cat:*)", "Read"], **rules).on(GROUND)
    assert told(judge.judge(read("package-lock.json"))) == "allow"
    assert told(judge.judge(bash("cat package-lock.json"))) == "allow"
    assert told(judge.judge(bash("cat < package-lock.json"))) == "allow"
    assert told(judge.judge(bash("cat x > package-lock.json"))) != "allow"


def test_a_redirection_needs_a_rule_that_allows_the_edit() -> None:
    for rule in ("Edit(/src/**)", "Write(/src/**)", "Edit", "Write"):
        judge = Policy(allow=["Bash(ls:*)", rule]).on(GROUND)
        assert told(judge.judge(bash("ls > src/x"))) == "allow", rule
    judge = Policy(allow=["Bash(ls:*)", "Read(/src/**)"]).on(GROUND)
    assert told(judge.judge(bash("ls > src/x"))) == "ask"


# --- tools


def test_a_search_that_would_show_hidden_files_is_asked_about() -> None:
    judge = Policy(deny=["Read(/secrets/**)"]).on(GROUND)
    grep = {"pattern": "x"}
    assert told(judge.judge(Call("Grep", {**grep, "path": "src"}))) == "allow"
    assert told(judge.judge(Call("Grep", {**grep, "path": "."}))) == "ask"
    assert told(judge.judge(Call("Grep", grep))) == "ask"
    assert told(judge.judge(Call("Grep", {**grep, "path": "secrets"}))) in ("ask", "deny")
    assert told(judge.judge(Call("Grep", {**grep, "path": "secrets/a"}))) == "deny"
    asked = Policy(ask=["Read(/secrets/**)"]).on(GROUND)
    assert told(asked.judge(Call("Grep", {**grep, "path": "."}))) == "ask"


def test_a_search_that_would_show_bridles_home_is_asked_of_a_person() -> None:
    judge = Policy().on(GROUND)
    for path in ("/home/me", "/", "~", "/home/me/.bridle", "/home/me/app/.."):
        call = Call("Grep", {"pattern": "token", "path": path})
        assert told(judge.judge(call)) == "guard", path
    assert told(judge.judge(Call("Grep", {"pattern": "x"}))) == "allow"


@pytest.mark.parametrize("tool", ["Read", "Edit", "Write", "NotebookEdit", "NotebookRead"])
@pytest.mark.parametrize("path", [None, 1, "", "a\0b", [], {"x": 1}])
@pytest.mark.parametrize("preset", ["ask", "autonomous"])
def test_a_path_that_cant_be_read_is_asked_about(tool: str, path: object, preset: Any) -> None:
    field = "notebook_path" if "Notebook" in tool else "file_path"
    judge = Policy(preset, allow=["Read", "Edit"]).on(GROUND)
    assert told(judge.judge(Call(tool, {field: path}))) == "ask"
    assert told(judge.judge(Call(tool, {}))) == "ask"


@pytest.mark.parametrize("command", [None, 1, "", "  \n ", [], ["ls"], {"x": 1}, True])
def test_a_command_that_cant_be_read_is_asked_about(command: object) -> None:
    assert told(JUDGES["whole"].judge(bash(command))) == "ask"
    assert told(JUDGES["autonomous"].judge(Call("Bash", {}))) == "ask"


@pytest.mark.parametrize("value", [True, 1, "true", "false", [1]])
def test_leaving_the_sandbox_is_asked_of_a_person(value: object) -> None:
    assert told(JUDGES["whole"].judge(bash("ls", dangerouslyDisableSandbox=value))) == "guard"
    assert told(JUDGES["whole"].judge(bash("ls", dangerouslyDisableSandbox=False))) == "allow"


def test_a_tool_of_an_mcp_server_is_allowed_by_its_server_or_its_name() -> None:
    judge = Policy(allow=["mcp__db", "mcp__web__get"], deny=["mcp__db__drop"]).on(GROUND)
    assert told(judge.judge(Call("mcp__db__query", {}))) == "allow"
    assert told(judge.judge(Call("mcp__db__drop", {}))) == "deny"
    assert told(judge.judge(Call("mcp__db2__query", {}))) == "ask"
    assert told(judge.judge(Call("mcp__web__get", {}))) == "allow"
    assert told(judge.judge(Call("mcp__web__put", {}))) == "ask"


# --- plan mode


def test_in_plan_mode_only_reading_passes_whatever_rules_allow() -> None:
    judge = Policy("autonomous", allow=["Bash", "Edit", "Write"]).on(GROUND)
    for command, expected in [("ls", "allow"), ("cat x | head", "allow"), ("npm test", "deny")]:
        call = Call("Bash", {"command": command}, "plan")
        assert told(judge.judge(call)) == expected
        assert told(judge.judge(bash(command))) == "allow"
    assert told(judge.judge(edit("src/a", "plan"))) == "deny"
    assert told(judge.judge(edit("src/a"))) == "allow"
    assert told(judge.judge(edit("src/a", "acceptEdits"))) == "allow"
    assert told(judge.judge(Call("ExitPlanMode", {"plan": "x"}, "plan"))) == "ask"
    assert told(judge.judge(Call("AskUserQuestion", {}, "plan"))) == "ask"
    assert told(judge.judge(Call("Read", {"file_path": "x"}, "plan"))) == "allow"
    assert told(judge.judge(Call("mcp__a__b", {}, "plan"))) == "deny"
    assert told(judge.judge(Call("Unheard", {}, "plan"))) == "deny"


def test_in_plan_mode_denials_and_the_guard_hold() -> None:
    judge = Policy("ask", deny=["Read(/secrets/**)", "Bash(cat:*)"]).on(GROUND)
    assert told(judge.judge(Call("Read", {"file_path": "secrets/x"}, "plan"))) == "deny"
    assert told(judge.judge(Call("Bash", {"command": "cat x"}, "plan"))) == "deny"
    assert told(judge.judge(Call("Read", {"file_path": "~/.bridle/x"}, "plan"))) == "guard"


@pytest.mark.parametrize("preset", ["plan", "ask", "autonomous"])
def test_the_plan_itself_may_be_written_in_plan_mode(preset: Any) -> None:
    judge = Policy(preset).on(GROUND)
    mode = "plan"
    assert told(judge.judge(edit("~/.claude/plans/brave-fox.md", mode))) == "allow"
    assert told(judge.judge(edit("/home/me/.claude/plans/brave-fox.md", mode))) == "allow"
    for path in (
        "~/.claude/plans/x.sh",
        "~/.claude/plans/../settings.json",
        "~/.claude/x.md",
        "plans/x.md",
        ".claude/plans/x.md",
    ):
        assert told(judge.judge(edit(path, mode))) in ("deny", "guard"), path


def test_plans_are_where_the_cli_keeps_its_own_home() -> None:
    ground = Ground(folder="/a", home="/h", claude_home="/c")
    judge = Policy("plan").on(ground)
    assert told(judge.judge(edit("/c/plans/x.md"))) == "allow"
    assert told(judge.judge(edit("/h/.claude/plans/x.md"))) != "allow"


# --- words


@pytest.mark.parametrize(
    ("policy", "call", "words"),
    [
        ("list", bash("ls -la"), ["Allowed by Bash(ls:*) (policy)"]),
        ("list", bash("ls | head"), ["Allowed", "Bash(ls:*)", "Bash(head:*)"]),
        ("list", bash("ls; rm x"), ["Denied by Bash(rm:*) (policy)"]),
        ("list", bash("docker ps"), ["Asked", "no rule allows `docker ps`"]),
        ("list", bash("ls > out.txt"), ["Asked", "no rule allows to write out.txt", "writes out"]),
        ("list", bash("eval ls"), ["Asked", "eval", "can't be judged"]),
        ("list", bash("git push"), ["Asked by Bash(git push:*) (policy)"]),
        ("list", bash("cat $x"), ["Asked", "can't be known", "Read(./secrets/**)"]),
        ("list", bash("ls; docker ps | wc"), ["runs", "docker"]),
        ("bash", bash("bridle x"), ["Asked", "a person must see this", "Bridle"]),
        ("read-only", bash("ls"), ["Allowed by preset read-only", "only reads"]),
        ("read-only", bash("touch x"), ["Denied by preset read-only", "touch"]),
        ("ask", read("x"), ["Allowed by preset ask", "reading"]),
        ("ask", edit("x"), ["Asked by preset ask", "edits"]),
        ("ask", edit("../x"), ["Asked", "outside"]),
        ("list", read("secrets/x"), ["Denied by Read(./secrets/**) (policy)"]),
        ("ask", Call("AskUserQuestion", {}), ["Asked", "questions"]),
        ("ask", Call("Unheard", {}), ["Asked", "not known"]),
    ],
)
def test_a_verdict_is_explained_in_words(policy: str, call: Call, words: list[str]) -> None:
    said = JUDGES[policy].explain(call)
    assert all(word in said for word in words), said


def test_an_explanation_stays_short_for_a_long_command() -> None:
    assert len(JUDGES["list"].explain(bash(f"docker {'x' * 5000}"))) < 500
    assert len(JUDGES["list"].explain(bash("docker y; " * 500 + "ls > " + "z" * 3000))) < 5000


# --- what holds for any call

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
_PIECES = st.sampled_from(
    [
        *(
            "ls",
            "cat",
            "rm",
            "git",
            "status",
            "diff",
            "echo",
            "x",
            "secrets/key",
            "~/.bridle/t",
            " ",
        ),
        *(" ", " ", ";", "&&", "||", "|", "&", "\n", "$(", ")", "`", "<(", ">", "<", "<<E\n", "E"),
        *("'", '"', "\\", "$x", "${x}", "*", "?", "{a,b}", "#", "(", "{", "}", "if", "then", "fi"),
        *(
            "for",
            "in",
            "do",
            "done",
            "case",
            "esac",
            "[[",
            "]]",
            "[",
            "]",
            "f()",
            "=",
            "PATH=",
            "x=",
        ),
        *("eval", "env", "xargs", "sh -c", "find", "-exec", "\\;", "cd", "..", "/dev/null", "2>&1"),
        *("\0", "\r", "\u202e", "\xa0", "\ud800", "é"),
    ]
)
_SCRIPTS = st.lists(_PIECES, max_size=14).map("".join) | st.text(max_size=40)
_INPUTS = st.dictionaries(st.sampled_from(FIELDS), _JSON | _SCRIPTS, max_size=4)
_CALLS = st.builds(
    Call,
    st.sampled_from(TOOLS),
    _INPUTS,
    st.sampled_from([None, "plan", "default", "bypassPermissions", "odd"]),
    st.sampled_from(["", "/home/me/app/src", "/", "odd"]),
)
_BASH = st.builds(bash, _SCRIPTS)


@given(_CALLS, st.sampled_from(sorted(POLICIES)))
@settings(max_examples=tries(100, 3_000))
def test_no_call_raises(call: Call, policy: str) -> None:
    judge = JUDGES[policy]
    assert told(judge.judge(call)) in ("allow", "ask", "deny", "guard")
    assert isinstance(judge.explain(call), str)
    assert isinstance(suggest(call, GROUND), list)


@pytest.mark.parametrize("tool", ["mcp__a__b", "WebFetch", "Bash", "Read", "Task"])
def test_an_input_that_is_nested_deeply_does_not_raise(tool: str) -> None:
    deep: Any = "x"
    for _ in range(900):
        deep = [deep]
    call = Call(tool, {"url": deep, "command": deep, "file_path": deep, "x": {"y": deep}})
    assert told(JUDGES["ask"].judge(call)) in ("allow", "ask", "deny", "guard")
    suggest(call, GROUND)


_RULES = st.sampled_from(
    [
        *("Bash", "Bash(ls:*)", "Bash(rm:*)", "Bash(git * x)", "Bash(* x)", "Bash(echo *)"),
        *(
            "Bash(cat:*)",
            "Read",
            "Read(/secrets/**)",
            "Read(~/**)",
            "Edit",
            "Edit(*)",
            "Edit(//**)",
        ),
        *("WebFetch", "WebFetch(domain:a.com)", "mcp__a", "Task", "Skill(x)", "Unheard"),
    ]
)
_LISTS = st.lists(_RULES, max_size=3)
_PRESETS = st.sampled_from(sorted(PRESETS))
_ORDER = {"allow": 0, "ask": 1, "guard": 1, "deny": 2}


@given(_CALLS | _BASH, _PRESETS, _LISTS, _LISTS, _LISTS, _RULES)
@settings(max_examples=tries(100, 3_000))
def test_one_more_denial_never_loosens_anything(
    call: Call, preset: Any, allow: list[str], ask: list[str], deny: list[str], more: str
) -> None:
    before = told(Policy(preset, allow=allow, ask=ask, deny=deny).on(GROUND).judge(call))
    after = told(Policy(preset, allow=allow, ask=ask, deny=[*deny, more]).on(GROUND).judge(call))
    assert _ORDER[after] >= _ORDER[before]


@given(_CALLS | _BASH, _PRESETS, _LISTS, _LISTS, _LISTS, _RULES)
@settings(max_examples=tries(100, 3_000))
def test_one_more_allowance_opens_no_denial_of_a_rule_and_no_guard(
    call: Call, preset: Any, allow: list[str], ask: list[str], deny: list[str], more: str
) -> None:
    before = Policy(preset, allow=allow, ask=ask, deny=deny).on(GROUND).judge(call)
    after = Policy(preset, allow=[*allow, more], ask=ask, deny=deny).on(GROUND).judge(call)
    if isinstance(before, Denied) and not before.rule.startswith("preset"):
        assert isinstance(after, Denied)
    if isinstance(before, Allowed):
        assert isinstance(after, Allowed)
    if told(before) == "guard":
        assert told(after) == "guard"


_GOOD = st.sampled_from(
    [
        *("ls", "ls -la src", "git status", "git diff HEAD", "npm run test", "cat README.md"),
        *("ls | head -3", "if [ -f x ]; then ls; fi", "for i in 1 2; do ls; done", "(ls)"),
        *("ls > src/x", "ls > /dev/null 2>&1", "cat <<'E'\nx\nE\n", "sh -c 'ls'", "cd src && ls"),
        *("CI=1 npm run test", "find src -name '*.py'", "echo 'a b' \"c\"", "{ ls; }"),
    ]
)
_MORE = st.sampled_from(
    [
        *(
            "rm x",
            "docker ps",
            "eval ls",
            "$x",
            "curl a",
            "ls",
            "git status",
            "head -1",
            "git push",
        ),
        *("/bin/rm x", "env rm x", "sh -c 'rm x'", "x=1", "PATH=/ ls", "find . -delete", "id"),
        *("f() { rm x; }", "(id)", "{ id; }", "if id; then ls; fi", "echo $(id)", "echo `id`"),
        *(
            "ls > out.txt",
            "cat secrets/key",
            "cat ~/.bridle/t",
            "cd / && ls",
            "cat <(id)",
            "r?",
            "'id",
        ),
        *("time id", "! id", "[[ -f $(id) ]]", ">out.txt", "coproc id", "trap id EXIT", "xargs id"),
        *(
            "'i''d'",
            "i\\d",
            "$'id'",
            "\\id",
            '"id"',
            "i\u200bd",
            "id#x",
            "id\r",
            "cat <<E\n$(id)\nE\n",
        ),
    ]
)
_WAYS = st.sampled_from(
    [
        *(
            "{0}; {1}",
            "{0} && {1}",
            "{0} || {1}",
            "{0} | {1}",
            "{0} & {1}",
            "{0}\n{1}",
            "{0} |& {1}",
        ),
        *("{0};{1}", "{0}&{1}", "{0}|{1}", "{1}; {0}", "{1} && {0}", "{1}\n{0}", "{1} | {0}"),
        *("ls $({1}); {0}", 'ls "$({1})"; {0}', "ls `{1}`; {0}", "ls <({1}); {0}", "{0} $({1})"),
        *(
            '{0} "$({1})"',
            "{0} `{1}`",
            "{0} <({1})",
            "{0} > >({1})",
            "({1}); {0}",
            "{{ {1}; }}; {0}",
        ),
        *(
            "if {1}; then {0}; fi",
            "while {1}; do {0}; done",
            "f() {{ {1}\n}}; {0}",
            "x=$({1}); {0}",
        ),
    ]
)


_PLAIN_WAYS = st.sampled_from(
    ["{0}; {1}", "{0} && {1}", "{0} || {1}", "{0} | {1}", "{0} & {1}", "{0}\n{1}"]
)


def check_addition(good: str, way: str, more: str) -> None:
    judge = JUDGES["open"]
    assert told(judge.judge(bash(good))) == "allow"
    if told(judge.judge(bash(way.format(good, more)))) != "allow":
        return
    alone = told(judge.judge(bash(more)))
    # What runs nothing by itself (a variable, `true`, a comment) needs no rule beside something.
    beside = told(judge.judge(bash(f"{more}\nls")))
    assert "allow" in (alone, beside), (good, way, more)


@given(_GOOD, _WAYS, _MORE)
@settings(max_examples=tries(300, 5_000))
def test_what_is_added_to_an_allowed_command_must_be_allowed_by_itself(
    good: str, way: str, more: str
) -> None:
    check_addition(good, way, more)


@given(_GOOD, _PLAIN_WAYS, _SCRIPTS)
@settings(max_examples=tries(200, 5_000))
def test_any_text_behind_an_allowed_command_must_be_allowed_by_itself(
    good: str, way: str, more: str
) -> None:
    check_addition(good, way, more)


# --- time


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("echo ${a/" + "/" * 4_000, id="an expansion without an end"),
        pytest.param(
            "cd a; cd b; cd c; cd d; echo " + "x " * 6_000, id="many words in many folders"
        ),
        pytest.param("ls;" * 4_000, id="many commands"),
        pytest.param("ls " + "$(ls) " * 2_000, id="many substitutions"),
        pytest.param("ls " + "$(" * 4_000, id="deep substitutions"),
        pytest.param("(" * 4_000, id="deep subshells"),
        pytest.param("ls " + "'a'" * 6_000, id="many quotes"),
        pytest.param("cat " + "* " * 4_000, id="many globs"),
        pytest.param("cat " + "*/" * 4_000, id="a deep glob"),
        pytest.param("if " * 4_000, id="deep conditions"),
        pytest.param("ls " + "{a," * 4_000, id="deep braces"),
        pytest.param("x" * 199_999, id="a long name"),
        pytest.param("ls " + "x" * 1_000_000, id="a megabyte"),
    ],
)
def test_no_command_takes_long_to_judge(command: str) -> None:
    ground = Ground(folder="/tmp", home="/root", resolve=os.path.realpath)
    judge = POLICIES["list"].on(ground)
    assert operations(lambda: judge.judge(bash(command))) < 100 * len(command)


def test_a_command_of_more_than_16_kb_is_a_persons() -> None:
    ground = Ground(folder="/tmp", home="/root")
    for policy in (Policy("autonomous"), Policy("ask", allow=["Bash"]), Policy("edits")):
        judge = policy.on(ground)
        assert told(judge.judge(bash("echo " + "a" * (16_384 - 5)))) == "allow"
        for command in ("echo " + "a" * (16_384 - 4), "ls; " * 40_000, "$((" * 50_000):
            verdict = judge.judge(bash(command))
            assert isinstance(verdict, Asked)
            assert verdict.guard == "the command has more than 16 KB"
            assert operations(partial(judge.judge, bash(command))) < 100
    assert told(Policy("ask", deny=["Bash"]).on(ground).judge(bash("a" * 20_000))) == "deny"


@pytest.mark.parametrize("rule", ["Bash(rm:*)", "Read(.env)"])
def test_what_nobody_can_read_may_be_what_a_rule_denies(rule: str) -> None:
    """A deny stays a deny, however much is put behind it."""
    ground = Ground(folder="/tmp", home="/root")
    judge = Policy("autonomous", deny=[rule]).on(ground)
    verdict = judge.judge(bash("rm x; cat .env #" + "a" * 20_000))
    assert isinstance(verdict, Denied)
    assert verdict.rule == rule
    many = Call("mcp__x__y", {"a": [f"{'/p' * 2000}{number}" for number in range(1900)]})
    assert told(judge.judge(many)) == ("deny" if rule.startswith("Read") else "guard")


LARGE_INPUTS = [
    Call("Read", {"file_path": "/a" * 80_000}),
    Call("Write", {"file_path": "/tmp/a", "content": "/x" * 1_000_000}),
    Call("Glob", {"pattern": "{a,b}" * 10_000}),
    Call("Grep", {"pattern": "x", "glob": "{a,b}" * 10_000, "path": "/tmp"}),
    Call("Skill", {"skill": "a" * 100_000}),
    Call("SlashCommand", {"command": "/x " + "`a` " * 40_000}),
    Call("Task", {"subagent_type": "a/" * 50_000, "prompt": "x"}),
    Call("WebFetch", {"url": "http://" + "a." * 80_000}),
    Call("mcp__x__y", {"a": ["/etc/x"] * 100_000}),
    Call("mcp__x__y", {"a": [f"/etc/{number}" for number in range(1990)]}),
    Call("mcp__x__y", {"a": ["/tmp", "/usr", "/etc", *(f"p{number}" for number in range(1900))]}),
    Call("mcp__x__y", {"a": [f"{'/p' * 2000}{number}" for number in range(1900)]}),
    Call("mcp__x__y", {"a": [f"{'*/' * 50}{number}" for number in range(190)]}),
    Call("mcp__x__y", {"a": "{a,b}/" * 3_000}),
    Call("mcp__x__y", {"a": "[a" * 100_000}),
]


@pytest.mark.parametrize("call", LARGE_INPUTS, ids=lambda call: call.tool)
def test_no_input_takes_long_to_judge(call: Call) -> None:
    rules = ["Read(.env)", "Read(**/secret/**)", "WebFetch(domain:evil.com)", "Skill(no:*)"]
    presets: list[Any] = ["ask", "edits"]
    for preset in presets:
        judge = InForce(Policy(preset, deny=rules), ground_of("/tmp", bridle_home="/tmp/b"))
        assert operations(partial(judge.judge, call)) < 300_000


@pytest.mark.parametrize("tool", ["Monitor", "PowerShell", "SomethingNew"])
def test_a_tool_that_is_not_known_is_held_to_what_holds_for_commands(tool: str) -> None:
    judge = Policy("autonomous", deny=["Bash(rm:*)"]).on(GROUND)

    def said(command: object) -> str:
        return told(judge.judge(Call(tool, {"command": command})))

    assert said("rm -rf x") == "deny"
    assert said("claude --dangerously-skip-permissions") == "guard"
    assert said("echo x > ~/.bashrc") == "guard"
    assert said('eval "$x"') == "ask"
    assert said("npm test") == "allow"
    assert said(5) == "ask"


def test_a_folder_behind_a_link_hides_nothing(tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "l").symlink_to(tmp_path)
    policy = Policy("autonomous", deny=["Read(./secrets/**)"])
    judge = policy.on(real_ground(tmp_path))
    assert told(judge.judge(Call("Grep", {"pattern": "x", "path": str(tmp_path / "l")}))) == "ask"
    for command in ("grep -r x l/", "cat l/*/k", "cat l/se*/k"):
        assert told(judge.judge(bash(command))) in ("ask", "deny"), command


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("cat a; npm test; ls", "npm"),
        ("ls | tee x", "tee"),
        ("git log | cat > out", "writing out"),
        ("eval ls", "`eval`"),
        ("FOO=1 ls", "it sets FOO"),
    ],
)
def test_a_denial_names_what_is_not_allowed(command: str, named: str) -> None:
    verdict = Policy("read-only").on(GROUND).judge(bash(command))
    assert isinstance(verdict, Denied)
    assert f": {named}" in verdict.because
