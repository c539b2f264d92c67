"""Requests of the controller."""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable

import pytest

from bridle import Session
from bridle.errors import ControlFailed, InvalidRequest, NotSupported, RequestTimedOut
from bridle.protocol.capabilities import ANSWERED_SINCE
from bridle.protocol.messages import Assistant

from .lab import Lab, edits
from .talk import Judge, hear

NOBODY = "00000000-0000-4000-8000-000000000000"

#: Every typed method with harmless arguments, by the request that it makes.
METHODS: dict[str, Callable[[Session], Awaitable[object]]] = {
    "interrupt": lambda s: s.interrupt(),
    "set_permission_mode": lambda s: s.set_permission_mode("default"),
    "set_model": lambda s: s.set_model("claude-haiku-4-5-20251001"),
    "set_max_thinking_tokens": lambda s: s.set_max_thinking_tokens(4000),
    "rewind_files": lambda s: s.rewind_files(NOBODY),
    "mcp_status": lambda s: s.mcp_status(),
    "mcp_set_servers": lambda s: s.mcp_set_servers({}),
    "mcp_reconnect": lambda s: s.mcp_reconnect("nosuch"),
    "mcp_toggle": lambda s: s.mcp_toggle("nosuch", enabled=False),
    "get_context_usage": lambda s: s.context_usage(),
    "stop_task": lambda s: s.stop_task("nosuch"),
    "background_tasks": lambda s: s.background_tasks(),
    "get_task_output": lambda s: s.task_output("nosuch"),
    "cancel_async_message": lambda s: s.cancel_prompt(NOBODY),
    "get_settings": lambda s: s.settings(),
    "apply_flag_settings": lambda s: s.apply_settings({}),
    "list_permission_rules": lambda s: s.permission_rules(),
    "reload_plugins": lambda s: s.reload_plugins(),
    "reload_skills": lambda s: s.reload_skills(),
    "rename_session": lambda s: s.rename("a title"),
    "generate_session_title": lambda s: s.generate_title("fix the tests"),
    "get_binary_version": lambda s: s.binary_version(),
    "get_session_cost": lambda s: s.cost(),
    "get_usage": lambda s: s.usage(),
}


async def test_initialize(lab: Lab) -> None:
    """initialize: what the CLI tells of itself"""
    async with lab.session() as talk:
        info = talk.session.info
        assert info.commands
        assert info.models
        assert talk.session.capabilities.hook_on_failure is not lab.is_old
        told = info.claude_code_version
        assert told == (None if lab.is_old else lab.version)
        rest = (info.pid, info.session_state, info.capabilities, info.agents)
        assert all(rest) if told else not any(rest)
        assert bool(talk.session.capabilities.announced) is not lab.is_old
        lab.saw("version, pid, state, capabilities" if told else "no version")


async def test_every_method(lab: Lab) -> None:
    """Every method of a session: answered, or refused at once where it would never be"""
    assert {*METHODS, "initialize", "end_session"} == set(ANSWERED_SINCE)
    async with lab.session() as talk:
        written = len(talk.wire.sent)
        fates = [await _fate(talk.session, method) for method in METHODS.values()]
        found = dict(zip(METHODS, fates, strict=True))
        for subtype, fate in found.items():
            support = talk.session.capabilities.answers(subtype)
            assert (fate == "not supported") is (support == "no"), (subtype, fate)
        assert len(talk.wire.sent) - written == len(METHODS) - fates.count("not supported")
        lab.saw(", ".join(f"{fates.count(fate)} {fate}" for fate in sorted(set(fates))))


async def _fate(session: Session, method: Callable[[Session], Awaitable[object]]) -> str:
    try:
        await method(session)
    except NotSupported:
        return "not supported"
    except ControlFailed:
        return "refused by the CLI"
    return "answered"


async def test_cancel(lab: Lab) -> None:
    """A request that nobody waits for any more is taken back: the CLI lives on"""
    async with lab.session(["Hi."]) as talk:
        await talk.say("hi")
        # Else it may be quicker than we are.
        os.kill(talk.process.pid, signal.SIGSTOP)
        with pytest.raises(RequestTimedOut):
            await talk.session.mcp_status(timeout=0)
        os.kill(talk.process.pid, signal.SIGCONT)
        assert (b"control_cancel_request" in talk.wire.sent[-1]) is not lab.is_old
        await talk.session.mcp_status()
        assert talk.session.counters.late_responses == 1


async def test_set_model(lab: Lab) -> None:
    """set_model: the next turn uses it, and None goes back"""
    async with lab.session(["One.", "Two."]) as talk:
        await talk.session.set_model("claude-haiku-4-5-20251001")
        first = await talk.say("one")
        await talk.session.set_model(None)
        second = await talk.say("two")
        one, two = (heard.of(Assistant)[-1].message.model for heard in (first, second))
        assert one == "claude-haiku-4-5-20251001" == talk.model.requests[0].model
        assert two not in ("", one)


async def test_mcp_status(lab: Lab) -> None:
    """mcp_status: a server that can't be started is told as failed"""
    config = {"mcpServers": {"broken": {"command": "false", "args": []}}}
    async with lab.session(["Hi."], mcp_config=config) as talk:
        await talk.say("hi")
        status = await talk.session.mcp_status()
        assert [(s.name, s.status) for s in status.mcp_servers] == [("broken", "failed")]


async def test_rewind_files(lab: Lab) -> None:
    """rewind_files: the file is as it was at the prompt"""
    async with lab.session(edits(lab), approver=Judge(), file_checkpointing=True) as talk:
        turn = await talk.session.send("edit")
        await hear(turn)
        assert (lab.cwd / "in.txt").read_text() == "two\n"
        # Where prompts are replayed, our own answers come back too.
        assert bool(talk.session.counters.echoes) is lab.is_old
        await talk.session.rewind_files(str(turn.uuid))
        assert (lab.cwd / "in.txt").read_text() == "one\n"


async def test_rewind_preview(lab: Lab) -> None:
    """Session.rewind_files with dry_run: nothing changes"""
    async with lab.session(edits(lab), approver=Judge(), file_checkpointing=True) as talk:
        turn = await talk.session.send("edit")
        await hear(turn)
        if talk.session.capabilities.does("rewind dry run") == "no":
            with pytest.raises(InvalidRequest):
                await talk.session.rewind_files(str(turn.uuid), dry_run=True)
            lab.saw("refused by Bridle: the CLI would do it for real")
        else:
            preview = await talk.session.rewind_files(str(turn.uuid), dry_run=True)
            assert preview.files_changed == [str(lab.cwd / "in.txt")]
            lab.saw("tells what would change")
        assert (lab.cwd / "in.txt").read_text() == "two\n"


async def test_rewind_off(lab: Lab) -> None:
    """rewind_files without checkpointing: an error that says so"""
    async with lab.session(["Hi."]) as talk:
        turn = await talk.session.send("hi")
        await hear(turn)
        with pytest.raises(ControlFailed) as raised:
            await talk.session.rewind_files(str(turn.uuid))
        assert raised.value.detail.startswith("File rewinding is not enabled")
