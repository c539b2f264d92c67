"""Launching: what becomes of the options."""

from __future__ import annotations

import pytest

from bridle.errors import SessionEnded
from bridle.process.spec import LaunchOptions
from bridle.protocol.messages import StreamEvent
from bridle.protocol.system import Init
from bridle.testing import Turn, tool_use

from .lab import Lab
from .talk import Judge

HAIKU = "claude-haiku-4-5-20251001"
SHOW = "echo $CLAUDE_CODE_ENTRYPOINT $FROM_SETTINGS $FROM_PROJECT"


async def test_options(lab: Lab) -> None:
    """Options that every version knows, together: it starts, answers and heeds them"""
    outside = lab.cwd.parent / "outside"
    outside.mkdir()
    (outside / "in.txt").write_text("from outside\n")
    (lab.cwd / ".claude").mkdir()
    (lab.cwd / ".claude" / "settings.json").write_text('{"env": {"FROM_PROJECT": "project"}}')
    calls = [
        tool_use("Bash", command=SHOW, description="show"),
        tool_use("Read", file_path=str(outside / "in.txt")),
    ]
    judge = Judge()
    async with lab.session(
        [Turn(calls[0]), Turn(calls[1]), "Done."],
        approver=judge,
        model=HAIKU,
        max_turns=7,
        allowed_tools=["Bash"],
        disallowed_tools=["WebFetch"],
        add_dirs=[outside],
        append_system_prompt="Always speak of horses.",
        settings={"env": {"FROM_SETTINGS": "settings"}},
        setting_sources=["user"],
        strict_mcp_config=True,
        partial_messages=True,
    ) as talk:
        heard = await talk.say("go")
        asked = talk.model.requests[-1]
        shown, read = asked.tool_results.values()
        assert heard.result.result == "Done."
        assert asked.model == HAIKU
        assert "Always speak of horses." in asked.system
        assert shown.splitlines()[0] == "bridle settings"
        assert "from outside" in read
        assert judge.asked == []
        assert "WebFetch" not in heard.of(Init)[0].tools
        assert heard.of(StreamEvent)
        assert "(external, bridle)" in asked.headers["user-agent"]


async def test_more_options(lab: Lab) -> None:
    """More options that every version knows, together: it starts, answers and heeds them"""
    async with lab.session(
        ["Neigh."],
        system_prompt="You are a horse.",
        builtin_tools=["Bash", "Read"],
        betas=["context-1m-2025-08-07"],
        fallback_model=HAIKU,
        max_thinking_tokens=2000,
        max_budget_usd=1.5,
        mcp_config={"mcpServers": {}},
        mcp_tool_timeout_ms=5000,
        plugin_dirs=[lab.home],
        session_persistence=False,
        allow_dangerously_skip_permissions=True,
        env={"IS_SANDBOX": "1"},
        permission_mode="acceptEdits",
        replay_user_messages=True,
        file_checkpointing=True,
        session_state_events=True,
        entrypoint="stable",
    ) as talk:
        heard = await talk.say("speak")
        (asked,) = talk.model.requests
        assert heard.result.result == "Neigh."
        assert "You are a horse." in asked.system
        assert heard.of(Init)[0].tools == ["Bash", "Read"]
        assert "context-1m-2025-08-07" in asked.headers["anthropic-beta"]
        assert talk.session.permission_mode == "acceptEdits"
        assert "(external, stable)" in asked.headers["user-agent"]


async def test_new_options(lab: Lab) -> None:
    """Options of new versions: effort, thinking, hook_events, debug_file"""
    options: dict[str, LaunchOptions] = {
        "effort": {"effort": "low"},
        "thinking": {"thinking": "adaptive"},
        "hook_events": {"hook_events": True},
        "debug_file": {"debug_file": lab.home / "debug.txt"},
    }
    lab.home.mkdir()
    if lab.is_old:
        for launch in options.values():
            with pytest.raises(SessionEnded, match="unknown option") as raised:
                async with lab.session(**launch):
                    pass
            assert raised.value.exit_code == 1
        lab.saw("refused at start: the CLI exits with 1 and names the option")
    else:
        async with lab.session(
            ["Done."],
            effort="low",
            thinking="adaptive",
            hook_events=True,
            debug_file=lab.home / "debug.txt",
        ) as talk:
            await talk.say("go")
            (asked,) = talk.model.requests
            assert asked.body["output_config"]["effort"] == "low"
            assert asked.body["thinking"]["type"] == "adaptive"
        assert (lab.home / "debug.txt").exists()
        lab.saw("heeded")
