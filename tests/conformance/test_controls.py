"""Requests of the controller."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bridle.errors import KitError, TimedOut
from bridle.protocol import requests
from bridle.protocol.answers import Initialized, McpServers, Rewound
from bridle.protocol.capabilities import Capabilities
from bridle.protocol.events import Failure, ResponseReceived, Success
from bridle.protocol.messages import Assistant
from bridle.protocol.permissions import Allow
from bridle.protocol.requests import Initialize, OutboundRequest
from bridle.protocol.unknown import Unknown
from bridle.testing import PipedCli, Turn, tool_use

from .lab import BASH, Lab, allow, answered

#: Every request with harmless arguments; what it does is tested elsewhere.
PROBES: list[OutboundRequest] = [
    requests.SetPermissionMode("default"),
    requests.SetModel("claude-haiku-4-5-20251001"),
    requests.SetMaxThinkingTokens(4000),
    requests.RewindFiles("00000000-0000-4000-8000-000000000000"),
    requests.McpStatus(),
    requests.McpSetServers({}),
    requests.McpReconnect("nosuch"),
    requests.McpToggle("nosuch", enabled=False),
    requests.GetContextUsage(),
    requests.StopTask("nosuch"),
    requests.BackgroundTasks(),
    requests.GetTaskOutput("nosuch"),
    requests.CancelAsyncMessage("00000000-0000-4000-8000-000000000000"),
    requests.GetSettings(),
    requests.ApplyFlagSettings({}),
    requests.ListPermissionRules(),
    requests.ReloadPlugins(),
    requests.ReloadSkills(),
    requests.RenameSession("a title"),
    requests.GenerateSessionTitle("fix the tests"),
    requests.GetBinaryVersion(),
    requests.GetSessionCost(),
    requests.GetUsage(),
    requests.Interrupt(),
]


async def test_initialize(lab: Lab) -> None:
    """initialize: what the CLI tells of itself"""
    async with lab.run() as run:
        answer = await answered(run.cli, Initialize())
        assert isinstance(answer, Initialized)
        assert answer.commands
        assert answer.models
        assert run.cli.connection.capabilities.hook_on_failure is not lab.is_old
        told = answer.claude_code_version
        assert told == (None if lab.is_old else lab.version)
        rest = (answer.pid, answer.session_state, answer.capabilities, answer.agents)
        assert all(rest) if told else not any(rest)
        assert bool(run.cli.connection.capabilities.announced) is not lab.is_old
        lab.saw("version, pid, state, capabilities" if told else "no version")


async def test_initialize_again(lab: Lab) -> None:
    """initialize again with a permission pending: the request is in the answer, success or error"""
    async with lab.run([Turn(BASH), "Done."], initialize=Initialize()) as run:
        run.cli.prompt("go")
        event = await run.cli.request()
        outcome = await run.cli.ask(Initialize())
        assert isinstance(outcome, Failure) is lab.is_old
        # It was delivered before, so it is known for a duplicate here; a new controller gets it.
        assert run.cli.connection.counters.duplicate_requests == 1
        lab.saw(f"error: {outcome.error}" if isinstance(outcome, Failure) else "success")
        run.cli.answer(event, Allow())
        await run.cli.result()
        assert lab.exists("x.txt")


async def test_take_over(lab: Lab) -> None:
    """A second controller takes the state over in mid-approval and answers"""
    async with lab.run([Turn(BASH), "Done."], initialize=Initialize()) as run:
        run.cli.prompt("go")
        event = await run.cli.request()
        later = type(run.cli.connection).restore(run.cli.connection.save(), nonce="later")
        assert list(later.pending) == [event.request_id]
        run.cli.connection = later
        run.cli.answer(later.pending[event.request_id], Allow())
        await run.cli.result()
        assert lab.exists("x.txt")


async def test_every_request(lab: Lab) -> None:
    """Every request: what is answered, and what stays silent for ever, is as the table says"""
    async with lab.run(initialize=Initialize()) as run:
        capabilities = Capabilities(lab.version)
        silent = []
        for request in PROBES:
            subtype = str(request.__struct_config__.tag)
            expected = capabilities.answers(subtype)
            outcome = await _probe(run.cli, request, 10 if expected == "yes" else 1)
            assert expected == ("no" if outcome is None else "yes"), (subtype, outcome)
            if outcome is None:
                silent.append(subtype)
            if isinstance(outcome, Success):
                assert not isinstance(outcome.answer, Unknown), outcome.answer
        assert isinstance(await _probe(run.cli, requests.McpStatus(), 10), Success)
        answered_count = len(PROBES) - len(silent)
        lab.saw(f"{answered_count} of {len(PROBES)} are answered, as listed below")


async def _probe(cli: PipedCli, request: OutboundRequest, limit: float) -> Success | Failure | None:
    try:
        return await cli.ask(request, limit)
    except TimedOut:
        return None


async def test_cancel(lab: Lab) -> None:
    """Connection.cancel: the CLI lives on"""
    async with lab.run(["Hi."]) as run:
        run.cli.prompt("hi")
        await run.cli.result()
        request_id, line = run.cli.connection.request(requests.McpStatus())
        run.cli.write(line)
        cancel = run.cli.connection.cancel(request_id)
        assert bool(cancel) is not lab.is_old
        run.cli.write(cancel)
        await answered(run.cli, requests.McpStatus())
        assert run.cli.connection.counters.late_responses == 1


async def test_cancel_written(lab: Lab) -> None:
    """A control_cancel_request from the controller (Bridle writes none to old CLIs)"""
    async with lab.run(initialize=Initialize()) as run:
        run.cli.write(b'{"type":"control_cancel_request","request_id":"req_9_never"}\n')
        if lab.is_old:
            assert await run.cli.exit_code() == 1
            assert "control_cancel_request" in run.cli.stderr
            lab.saw("THE CLI EXITS with 1")
        else:
            await answered(run.cli, requests.McpStatus())
            lab.saw("understood")


async def test_unknown_request(lab: Lab) -> None:
    """A request that no CLI knows"""
    async with lab.run(initialize=Initialize()) as run:
        line = run.cli.connection.request(requests.McpStatus())[1]
        run.cli.write(line.replace(b"mcp_status", b"no_such_thing"))
        if lab.is_old:
            await answered(run.cli, requests.McpStatus())
            assert len(run.cli.connection.asked) == 1
            lab.saw("never answered")
        else:
            event = await run.cli.expect(
                lambda e: isinstance(e, ResponseReceived) and isinstance(e.outcome, Failure)
            )
            assert isinstance(event, ResponseReceived)
            assert isinstance(event.outcome, Failure)
            lab.saw(f"an error: `{event.outcome.code}`")


async def test_set_model(lab: Lab) -> None:
    """set_model: the next turn uses it, and None goes back"""
    async with lab.run(["One.", "Two."], initialize=Initialize()) as run:
        await answered(run.cli, requests.SetModel("claude-haiku-4-5-20251001"))
        run.cli.prompt("one")
        await run.cli.result()
        await answered(run.cli, requests.SetModel(None))
        run.cli.prompt("two")
        await run.cli.result()
        one, two = (message.message.model for message in run.cli.messages(Assistant))
        assert one == "claude-haiku-4-5-20251001" == run.model.requests[0].model
        assert two not in ("", one)


async def test_mcp_status(lab: Lab) -> None:
    """mcp_status: a server that can't be started is told as failed"""
    config = {"mcpServers": {"broken": {"command": "false", "args": []}}}
    flags = ["--mcp-config", json.dumps(config)]
    async with lab.run(["Hi."], flags=flags, initialize=Initialize()) as run:
        run.cli.prompt("hi")
        await run.cli.result()
        answer = await answered(run.cli, requests.McpStatus())
        assert isinstance(answer, McpServers)
        assert [(server.name, server.status) for server in answer.mcp_servers] == [
            ("broken", "failed")
        ]


REWIND: dict[str, Any] = {
    "flags": ["--replay-user-messages"],
    "env": {"CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING": "1"},
    "respond": allow,
}
PROMPT_ID = "00000000-0000-4000-8000-00000000000a"


def edits(lab: Lab) -> list[Turn | str]:
    path = lab.cwd / "in.txt"
    path.write_text("one\n")
    read = tool_use("Read", file_path=str(path))
    edit = tool_use("Edit", file_path=str(path), old_string="one", new_string="two")
    return [Turn(read), Turn(edit), "Edited."]


async def test_rewind_files(lab: Lab) -> None:
    """rewind_files: the file is as it was at the prompt"""
    async with lab.run(edits(lab), initialize=Initialize(), **REWIND) as run:
        run.cli.prompt("edit", uuid=PROMPT_ID)
        await run.cli.result()
        assert (lab.cwd / "in.txt").read_text() == "two\n"
        # The echoes of our own answers come back under --replay-user-messages.
        assert run.cli.connection.counters.echoes > 0
        answer = await answered(run.cli, requests.RewindFiles(PROMPT_ID))
        assert isinstance(answer, Rewound)
        assert (lab.cwd / "in.txt").read_text() == "one\n"


async def test_rewind_dry_run(lab: Lab) -> None:
    """rewind_files with dry_run, as the CLI takes it when Bridle does not refuse"""
    async with lab.run(edits(lab), initialize=Initialize(), **REWIND) as run:
        run.cli.prompt("edit", uuid=PROMPT_ID)
        await run.cli.result()
        request_id, line = run.cli.connection.request(requests.RewindFiles(PROMPT_ID))
        run.cli.write(line.replace(b'"user_message_id"', b'"dry_run":true,"user_message_id"'))
        await run.cli.expect(
            lambda e: isinstance(e, ResponseReceived) and e.request_id == request_id
        )
        kept = (lab.cwd / "in.txt").read_text() == "two\n"
        assert kept is (run.cli.connection.capabilities.does("rewind dry run") == "yes")
        lab.saw("tells what would change" if kept else "REWINDS FOR REAL")


async def test_rewind_off(lab: Lab) -> None:
    """rewind_files without checkpointing: an error that says so"""
    async with lab.run(["Hi."], initialize=Initialize()) as run:
        run.cli.prompt("hi", uuid=PROMPT_ID)
        await run.cli.result()
        outcome = await run.cli.ask(requests.RewindFiles(PROMPT_ID))
        assert isinstance(outcome, Failure)
        assert outcome.error.startswith("File rewinding is not enabled")


async def test_end_session(lab: Lab) -> None:
    """end_session"""
    async with lab.run(initialize=Initialize()) as run:
        if lab.is_old:
            with pytest.raises(TimedOut):
                await run.cli.ask(requests.EndSession(), 2)
            lab.saw("never answered")
        else:
            run.cli.write(run.cli.connection.request(requests.EndSession())[1])
            assert await run.cli.exit_code() == 0
            lab.saw("exits 0 at once")


async def test_set_servers_without_servers(lab: Lab) -> None:
    """mcp_set_servers without servers (Bridle refuses to write it)"""
    async with lab.run(initialize=Initialize()) as run:
        line = run.cli.connection.request(requests.McpSetServers({}))[1]
        run.cli.write(line.replace(b',"servers":{}', b""))
        try:
            await run.cli.ask(requests.McpStatus(), 5)
        except KitError:
            # The one ends at once, the other stays and never answers anything again.
            assert lab.is_old
            lab.saw("THE CLI IS LOST: it crashes or wedges")
        else:
            assert not lab.is_old
            lab.saw("answered with an error")
