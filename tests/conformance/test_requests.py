"""Requests of the controller, as they are on the wire."""

from __future__ import annotations

import asyncio

import pytest

from bridle.errors import KitError, TimedOut
from bridle.protocol import requests
from bridle.protocol.capabilities import Capabilities
from bridle.protocol.events import Failure, ResponseReceived, Success
from bridle.protocol.outbound import subtype_of
from bridle.protocol.permissions import Allow
from bridle.protocol.requests import Initialize, OutboundRequest
from bridle.protocol.unknown import Unknown
from bridle.testing import PipedCli, Turn

from .lab import BASH, Lab, allow, answered, edits

#: How long a request that is never answered is waited for.
SILENCE = 3.0

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
        silent = [one for one in PROBES if capabilities.answers(subtype_of(one)) == "no"]
        for request in PROBES:
            if request not in silent:
                outcome = await run.cli.ask(request, 10)
                if isinstance(outcome, Success):
                    assert not isinstance(outcome.answer, Unknown), outcome.answer
        outcomes = await asyncio.gather(*(_probe(run.cli, one, SILENCE) for one in silent))
        assert set(outcomes) <= {None}, outcomes
        await answered(run.cli, requests.McpStatus())
        count = len(PROBES) - len(silent)
        lab.saw(f"{count} of {len(PROBES)} are answered, as listed below")


async def _probe(cli: PipedCli, request: OutboundRequest, limit: float) -> Success | Failure | None:
    try:
        return await cli.ask(request, limit)
    except TimedOut:
        return None


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


async def test_rewind_dry_run(lab: Lab) -> None:
    """rewind_files with dry_run, as the CLI takes it when Bridle does not refuse"""
    prompt_id = "00000000-0000-4000-8000-00000000000a"
    async with lab.run(
        edits(lab),
        flags=["--replay-user-messages"],
        env={"CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING": "1"},
        respond=allow,
        initialize=Initialize(),
    ) as run:
        run.cli.prompt("edit", uuid=prompt_id)
        await run.cli.result()
        # The echoes of our own answers come back under --replay-user-messages.
        assert run.cli.connection.counters.echoes > 0
        request_id, line = run.cli.connection.request(requests.RewindFiles(prompt_id))
        run.cli.write(line.replace(b'"user_message_id"', b'"dry_run":true,"user_message_id"'))
        await run.cli.expect(
            lambda e: isinstance(e, ResponseReceived) and e.request_id == request_id
        )
        kept = (lab.cwd / "in.txt").read_text() == "two\n"
        assert kept is (run.cli.connection.capabilities.does("rewind dry run") == "yes")
        lab.saw("tells what would change" if kept else "REWINDS FOR REAL")


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
