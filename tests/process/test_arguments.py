"""A launch as words: every option has its flag, no value becomes one, and the layers hold."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from bridle.errors import InvalidLaunch
from bridle.process.arguments import (
    ASK_US,
    FLAGS,
    LISTS,
    MARKER,
    STREAM_JSON,
    cli_arguments,
    cli_environment,
)
from bridle.process.spec import LaunchOptions, LaunchSpec

#: Section 1 of the protocol's reference.
OPTIONS_OF_THE_CLI = {
    *("--system-prompt", "--append-system-prompt", "--tools", "--allowedTools"),
    *("--disallowedTools", "--max-turns", "--max-budget-usd", "--model", "--fallback-model"),
    *("--betas", "--agent", "--permission-mode", "--allow-dangerously-skip-permissions"),
    *("--dangerously-skip-permissions", "--continue", "--resume", "--session-id"),
    *("--fork-session", "--resume-session-at", "--no-session-persistence", "--settings"),
    *("--setting-sources", "--add-dir", "--mcp-config", "--strict-mcp-config"),
    *("--include-partial-messages", "--include-hook-events", "--replay-user-messages"),
    *("--plugin-dir", "--thinking", "--max-thinking-tokens", "--effort", "--json-schema"),
    *("--debug-file",),
}

#: field, value, the words that it becomes
TABLE: list[tuple[str, Any, list[str]]] = [
    ("system_prompt", "Be brief.", ["--system-prompt=Be brief."]),
    ("system_prompt", "", ["--system-prompt="]),
    ("append_system_prompt", "Two\nlines", ["--append-system-prompt=Two\nlines"]),
    ("builtin_tools", ["Bash", "Read"], ["--tools=Bash,Read"]),
    ("builtin_tools", [], ["--tools="]),
    ("allowed_tools", ["Bash(git *)", "Read"], ["--allowedTools=Bash(git *),Read"]),
    ("allowed_tools", [], []),
    ("disallowed_tools", ["Write"], ["--disallowedTools=Write"]),
    ("disallowed_tools", [], []),
    ("max_turns", 3, ["--max-turns=3"]),
    ("max_turns", 0, ["--max-turns=0"]),
    ("max_budget_usd", 1.5, ["--max-budget-usd=1.5"]),
    ("model", "haiku", ["--model=haiku"]),
    ("fallback_model", "sonnet", ["--fallback-model=sonnet"]),
    ("betas", ["one", "two"], ["--betas=one,two"]),
    ("betas", [], []),
    ("agent", "reviewer", ["--agent=reviewer"]),
    ("permission_mode", "plan", ["--permission-mode=plan"]),
    ("allow_dangerously_skip_permissions", True, ["--allow-dangerously-skip-permissions"]),
    ("allow_dangerously_skip_permissions", False, []),
    ("dangerously_skip_permissions", True, ["--dangerously-skip-permissions"]),
    ("dangerously_skip_permissions", False, []),
    ("continue_last", True, ["--continue"]),
    ("continue_last", False, []),
    ("resume", "0-1-2", ["--resume=0-1-2"]),
    ("session_id", "3-4-5", ["--session-id=3-4-5"]),
    ("fork_session", True, ["--fork-session"]),
    ("fork_session", False, []),
    ("resume_session_at", "6-7", ["--resume-session-at=6-7"]),
    ("session_persistence", False, ["--no-session-persistence"]),
    ("session_persistence", True, []),
    ("settings", "settings.json", ["--settings=settings.json"]),
    ("settings", {"model": "ä"}, ['--settings={"model":"ä"}']),
    ("setting_sources", ["user", "local"], ["--setting-sources=user,local"]),
    ("setting_sources", [], ["--setting-sources="]),
    ("add_dirs", ["../a", Path("/b")], ["--add-dir=../a", "--add-dir=/b"]),
    ("mcp_config", "mcp.json", ["--mcp-config=mcp.json"]),
    ("mcp_config", {"mcpServers": {}}, ['--mcp-config={"mcpServers":{}}']),
    ("mcp_config", ["a.json", "b.json"], ["--mcp-config=a.json", "--mcp-config=b.json"]),
    ("strict_mcp_config", True, ["--strict-mcp-config"]),
    ("strict_mcp_config", False, []),
    ("partial_messages", True, ["--include-partial-messages"]),
    ("partial_messages", False, []),
    ("hook_events", True, ["--include-hook-events"]),
    ("hook_events", False, []),
    ("replay_user_messages", True, ["--replay-user-messages"]),
    ("replay_user_messages", False, []),
    ("plugin_dirs", [Path("/p"), "q"], ["--plugin-dir=/p", "--plugin-dir=q"]),
    ("thinking", "adaptive", ["--thinking=adaptive"]),
    ("max_thinking_tokens", 0, ["--max-thinking-tokens=0"]),
    ("effort", "max", ["--effort=max"]),
    ("json_schema", {"type": "object"}, ['--json-schema={"type":"object"}']),
    ("debug_file", Path("/tmp/debug"), ["--debug-file=/tmp/debug"]),
]

#: What a spec has beside the flags.
NOT_FLAGS = {
    *("cwd", "command", "router", "containment", "extra_args"),
    *("env", "unset", "inherit_env", "remove_api_key", "entrypoint"),
    *("file_checkpointing", "session_state_events", "mcp_tool_timeout_ms"),
}


def added(**options: Any) -> list[str]:
    """What a spec adds to the words that every CLI is given."""
    words = cli_arguments(LaunchSpec(**options))
    always = [*STREAM_JSON, *ASK_US]
    assert words[: len(always)] == always
    return words[len(always) :]


def environment(inherited: dict[str, str], **options: Any) -> dict[str, str]:
    return cli_environment(LaunchSpec(**options), inherited, "l1")


@pytest.mark.parametrize(("field", "value", "words"), TABLE)
def test_an_option_becomes_these_words(field: str, value: Any, words: list[str]) -> None:
    assert added(**{field: value}) == words


def test_the_table_above_leaves_no_option_out() -> None:
    assert {field for field, _, _ in TABLE} == set(FLAGS)


def test_every_option_of_the_cli_can_be_given() -> None:
    assert {flag for flag, _ in FLAGS.values()} == OPTIONS_OF_THE_CLI
    assert len(FLAGS) == len(OPTIONS_OF_THE_CLI)


def test_every_field_of_a_spec_is_a_flag_or_known_not_to_be_one() -> None:
    assert {*FLAGS, *NOT_FLAGS} == set(LaunchSpec.__struct_fields__)


def test_the_keywords_of_connect_are_the_fields_of_a_spec_with_their_types() -> None:
    assert get_type_hints(LaunchOptions) == get_type_hints(LaunchSpec)
    assert LaunchOptions.__optional_keys__ == set(LaunchSpec.__struct_fields__)


def test_nothing_given_adds_nothing() -> None:
    assert added() == []
    assert [*STREAM_JSON, *ASK_US] == [
        "-p",
        "--input-format=stream-json",
        "--output-format=stream-json",
        "--verbose",
        "--permission-prompt-tool=stdio",
    ]


def test_extra_arguments_come_last_and_as_they_are() -> None:
    words = added(extra_args=["--chrome", "a b"], debug_file="d", model="haiku")
    assert words == ["--model=haiku", "--debug-file=d", "--chrome", "a b"]


@pytest.mark.parametrize("field", [field for field, value, _ in TABLE if isinstance(value, str)])
def test_a_value_that_looks_like_a_flag_stays_a_value(field: str) -> None:
    value = "--dangerously-skip-permissions"
    (word,) = added(**{field: value})
    assert word == f"{FLAGS[field][0]}={value}"


def test_items_of_a_list_that_look_like_flags_stay_items() -> None:
    assert added(add_dirs=["--continue"], allowed_tools=["--continue"]) == [
        "--allowedTools=--continue",
        "--add-dir=--continue",
    ]


@pytest.mark.parametrize("field", LISTS)
def test_a_string_in_place_of_a_list_is_refused_and_not_taken_letter_by_letter(field: str) -> None:
    with pytest.raises(InvalidLaunch, match=rf"{field} is a list: give \['Bash'\]"):
        added(**{field: "Bash"})


def test_every_list_is_held_to_be_one() -> None:
    hints = get_type_hints(LaunchSpec)
    optional = {field for field, hint in hints.items() if "Sequence" in str(hint)}
    # These two may be a string as well.
    assert optional - {"command", "mcp_config"} == set(LISTS)


@pytest.mark.parametrize("options", [{"model": "a\0b"}, {"extra_args": ["\0"]}])
def test_a_nul_byte_in_an_argument_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidLaunch, match="can't hold a NUL byte"):
        added(**options)


def test_the_environment_has_its_layers() -> None:
    inherited = {"A": "inherited", "B": "inherited", "DISABLE_AUTOUPDATER": "0", "GONE": "1"}
    env = environment(
        inherited,
        env={"B": "given", "CLAUDE_CODE_ENTRYPOINT": "given", "ALSO_GONE": "1"},
        unset=["GONE", "ALSO_GONE", "NEVER_THERE"],
    )
    assert env == {
        "A": "inherited",
        "B": "given",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_ENTRYPOINT": "given",
        "PATH": os.defpath,
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.bareRepository",
        "GIT_CONFIG_VALUE_0": "explicit",
        MARKER: "l1",
    }


def test_git_takes_no_folder_for_a_repository_by_its_files_alone(tmp_path: Path) -> None:
    given = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "user.name", "GIT_CONFIG_VALUE_0": "me"}
    env = environment({"PATH": os.environ["PATH"], **given})
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path)], check=True)

    def git(*words: str) -> tuple[int, str]:
        done = subprocess.run(
            ["git", *words], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )
        return done.returncode, (done.stdout or done.stderr).strip()

    assert git("config", "user.name") == (0, "me")
    code, words = git("rev-parse", "HEAD")
    assert code != 0
    assert "safe.bareRepository" in words
    assert environment({"GIT_CONFIG_COUNT": "x"})["GIT_CONFIG_COUNT"] == "x"


def test_what_was_given_can_be_taken_away_and_so_can_what_we_set() -> None:
    env = environment({}, env={"X": "1"}, unset=["X", "DISABLE_AUTOUPDATER"])
    assert "X" not in env
    assert "DISABLE_AUTOUPDATER" not in env


def test_nothing_is_inherited_where_that_is_asked_for() -> None:
    env = environment({"SECRET": "1", "PATH": "/mine"}, inherit_env=False, env={"X": "1"})
    assert "SECRET" not in env
    assert (env["PATH"], env["X"]) == (os.defpath, "1")


def test_an_agent_does_not_believe_that_it_runs_inside_of_another() -> None:
    assert "CLAUDECODE" not in environment({"CLAUDECODE": "1"})
    assert environment({"CLAUDECODE": "1"}, env={"CLAUDECODE": "2"})["CLAUDECODE"] == "2"


@pytest.mark.parametrize("where", ["inherited", "given"])
def test_the_api_key_is_removed_only_on_request(where: str) -> None:
    key = {"ANTHROPIC_API_KEY": "sk-ant-1"}
    inherited, env = (key, {}) if where == "inherited" else ({}, key)
    assert environment(inherited, env=env)["ANTHROPIC_API_KEY"] == "sk-ant-1"
    assert "ANTHROPIC_API_KEY" not in environment(inherited, env=env, remove_api_key=True)


@pytest.mark.parametrize(
    ("option", "value", "variable", "text"),
    [
        ("entrypoint", "my-app", "CLAUDE_CODE_ENTRYPOINT", "my-app"),
        ("file_checkpointing", True, "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", "1"),
        ("session_state_events", True, "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS", "1"),
        ("mcp_tool_timeout_ms", 250, "MCP_TOOL_TIMEOUT", "250"),
    ],
)
def test_an_option_becomes_a_variable(option: str, value: Any, variable: str, text: str) -> None:
    assert environment({})["CLAUDE_CODE_ENTRYPOINT"] == "bridle"
    assert environment({}).get(variable) != text
    assert environment({}, **{option: value})[variable] == text


@pytest.mark.parametrize("options", [{"env": {MARKER: "forged"}}, {"unset": [MARKER]}])
def test_the_marker_of_a_launch_can_not_be_overridden(options: dict[str, Any]) -> None:
    assert environment({}, **options)[MARKER] == "l1"


@pytest.mark.parametrize("options", [{}, {"inherit_env": False}, {"env": {MARKER: "forged"}}])
def test_a_launch_below_another_one_carries_both_markers(options: dict[str, Any]) -> None:
    assert environment({MARKER: "above"}, **options)[MARKER] == "above/l1"


@pytest.mark.parametrize("env", [{"": "1"}, {"A=B": "1"}, {"A\0": "1"}, {"A": "1\0"}])
def test_what_is_no_variable_is_refused(env: dict[str, str]) -> None:
    with pytest.raises(InvalidLaunch, match="not a variable"):
        environment({}, env=env)
