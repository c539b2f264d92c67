"""The ways in, with a fake CLI behind real pipes."""

from __future__ import annotations

import asyncio
import inspect
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bridle
from bridle import Allow, StopLimits
from bridle.errors import (
    CliNotFound,
    ControlFailed,
    InvalidLaunch,
    RequestTimedOut,
    SessionClosed,
    SessionEnded,
)
from bridle.process.recording import load_recording
from bridle.process.spec import LaunchOptions
from bridle.session.commit import Commit
from bridle.session.connect import ConnectOptions
from bridle.session.session import Session
from bridle.testing import FakeCli, MemoryTransport, Replay

from .wire import init, result, say

MakeFake = Callable[..., FakeCli]
LIMIT = 20
HELLO: list[dict[str, Any]] = [{"prompt": True}, {"init": {}}, {"say": "Hi."}, {"result": "Hi."}]


async def test_one_prompt_from_start_to_end(fake_cli: MakeFake, commit: Commit) -> None:
    fake = fake_cli(HELLO)
    async with bridle.connect(command=fake.command, commit=commit) as session:
        turn = await session.send("hello")
        kinds = [type(message).__name__ async for message in turn]
        assert (await turn.result(LIMIT)).text == "Hi."
    assert kinds == ["Init", "Assistant", "Result"]
    assert (await session.stop()).step == "asked"
    told = [entry["told"]["type"] for entry in fake.report() if "told" in entry]
    assert told == ["control_request", "user", "control_request"]


async def test_run_gives_the_result_of_one_prompt(fake_cli: MakeFake) -> None:
    seen: list[object] = []
    result = await bridle.run("hello", command=fake_cli(HELLO).command, on_message=seen.append)
    assert result.text == "Hi."
    assert len(seen) == 3
    assert (await bridle.run("hello", command=fake_cli(HELLO).command)).text == "Hi."


def test_run_sync_needs_no_event_loop(fake_cli: MakeFake) -> None:
    assert bridle.run_sync("hello", command=fake_cli(HELLO).command).text == "Hi."


async def test_a_tool_is_asked_for_and_allowed(fake_cli: MakeFake, commit: Commit) -> None:
    asking = {"ask": {"tool_name": "Bash", "input": {"command": "ls"}}}
    fake = fake_cli([{"prompt": True}, asking, {"result": "done"}])
    options: Any = {"approver": lambda _: Allow({"command": "pwd"}), "commit": commit}
    async with bridle.connect(command=fake.command, **options) as session:
        turn = await session.send("go")
        users = [m async for m in turn if isinstance(m, bridle.User)]
    assert '{"command": "pwd"}' in str(users[0].message.content)


async def test_the_limit_of_unread_messages_holds_for_turns_and_for_taps() -> None:
    cli = MemoryTransport()
    async with bridle.connect(transport=cli, unread_limit=1_000) as session:
        tap, turn = session.messages(), await session.send("go")
        cli.say(init(), *[say("x" * 100)] * 20, result("done"))
        for mailbox in (tap._mailbox, turn._exchange):
            assert mailbox._bytes < 2_000
            assert len(mailbox) == 22
        assert len([message async for message in turn]) == 22


async def test_what_is_sent_before_the_handshake_is_queued(commit: Commit) -> None:
    """The handshake is answered late; the prompt must come after it."""
    cli = MemoryTransport(replies={"initialize": None})
    connecting = bridle.connect(transport=cli, commit=commit)
    starting = asyncio.ensure_future(connecting.__aenter__())
    await asyncio.sleep(0)
    session = connecting._session
    assert session
    turn = await session.send("early")
    with pytest.raises(SessionClosed, match="not ready"):
        _ = session.info
    assert cli.prompts() == []
    (asked,) = cli.written
    told = {"claude_code_version": cli.version}
    hello = {"subtype": "success", "request_id": asked["request_id"], "response": told}
    cli.say({"type": "control_response", "response": hello})
    await asyncio.wait_for(starting, LIMIT)
    cli.say(init(), result("Hi."))
    assert (await turn.result(LIMIT)).text == "Hi."
    assert [prompt["message"]["content"] for prompt in cli.prompts()] == ["early"]
    await session.stop()


async def test_a_program_that_only_claims_to_be_a_new_cli_is_not_used(commit: Commit) -> None:
    cli = MemoryTransport(version="9.9.9", replies={"initialize": {"claude_code_version": None}})
    with pytest.raises(InvalidLaunch, match=r"claims to be Claude Code 9\.9\.9"):
        async with bridle.connect(transport=cli, commit=commit):
            pass
    assert cli.is_input_closed


def test_a_transport_is_not_launched_with_options() -> None:
    with pytest.raises(TypeError, match="model can't be given"):
        bridle.connect(transport=MemoryTransport(), model="opus")


async def test_a_handshake_that_is_not_answered_has_a_limit(fake_cli: MakeFake) -> None:
    fake = fake_cli([{"pause": 600}], replies={"initialize": None})
    env = {"CLAUDE_CODE_STREAM_CLOSE_TIMEOUT": "50"}
    with pytest.raises(RequestTimedOut, match=r"initialize: .* 0\.05 s"):
        async with bridle.connect(command=fake.command, env=env):
            pytest.fail("it must not be ready")
    with pytest.raises(InvalidLaunch, match="not a number"):
        bridle.connect(env={"CLAUDE_CODE_STREAM_CLOSE_TIMEOUT": "soon"})


async def test_a_handshake_that_is_refused_says_why(fake_cli: MakeFake) -> None:
    fake = fake_cli([], replies={"initialize": {"error": "not logged in"}})
    with pytest.raises(ControlFailed, match="not logged in"):
        async with bridle.connect(command=fake.command):
            pytest.fail("it must not be ready")


async def test_a_cli_that_dies_at_once_leaves_its_last_words(fake_cli: MakeFake) -> None:
    fake = fake_cli([{"stderr": "\x1b[31mno such option\x1b[0m\n"}, {"exit": 7}])
    with pytest.raises(SessionEnded, match="no such option") as caught:
        async with bridle.connect(command=fake.command):
            pytest.fail("it must not be ready")
    assert caught.value.exit_code == 7
    assert caught.value.request == "initialize"
    assert caught.value.stderr == "no such option\n"


async def test_a_cli_that_is_killed_in_a_turn_is_told_with_its_signal(fake_cli: MakeFake) -> None:
    fake = fake_cli([{"prompt": True}, {"say": "Well,"}, {"die": "SIGKILL"}])
    async with bridle.connect(command=fake.command) as session:
        turn = await session.send("go")
        with pytest.raises(SessionEnded, match="SIGKILL") as caught:
            await turn.result(LIMIT)
        assert caught.value.signal == 9
        assert len([m async for m in _until_error(turn)]) == 1


async def _until_error(turn: bridle.Turn) -> Any:
    try:
        async for message in turn:
            yield message
    except SessionEnded:
        return


async def test_leaving_stops_the_agent_in_the_middle_of_a_turn(fake_cli: MakeFake) -> None:
    fake = fake_cli([{"prompt": True}, {"say": "Well,"}, {"pause": 600}])
    async with bridle.connect(command=fake.command) as session:
        turn = await session.send("go")
        await anext(turn)
    with pytest.raises(SessionClosed):
        await turn.result(LIMIT)
    asked = [
        e["told"]["request"]["subtype"] for e in fake.report() if "request" in e.get("told", {})
    ]
    assert asked[:2] == ["initialize", "interrupt"]


async def test_an_error_inside_the_block_stops_the_agent_too(fake_cli: MakeFake) -> None:
    fake = fake_cli([{"pause": 600}])
    with pytest.raises(ValueError, match="mine"):
        async with bridle.connect(command=fake.command) as session:
            raise ValueError("mine")
    assert session._transport.exit


async def test_a_cli_that_does_not_listen_is_ended_by_force(fake_cli: MakeFake) -> None:
    fake = fake_cli(
        [{"prompt": True}, {"ignore": ["SIGINT", "SIGTERM"]}, {"say": "."}, {"stall": 600}]
    )
    limits = StopLimits(graceful=0.1, signal=0.1)
    async with bridle.connect(command=fake.command, stop_limits=limits) as session:
        await anext(await session.send("go"))
        stopped = await session.stop()
    assert stopped.step == "SIGKILL"
    assert stopped.survivors == ()


async def test_a_session_is_entered_once(fake_cli: MakeFake) -> None:
    connecting = bridle.connect(command=fake_cli([]).command)
    async with connecting:
        pass
    with pytest.raises(SessionClosed, match="connect\\(\\) again"):
        await connecting.__aenter__()


async def test_a_log_file_has_every_line_and_can_be_replayed(
    fake_cli: MakeFake, tmp_path: Path
) -> None:
    log = tmp_path / "logs" / "wire.ndjson"
    async with bridle.connect(command=fake_cli(HELLO).command, log=log) as session:
        await (await session.send("hello")).result(LIMIT)
    said = [(entry.dir, entry.value().get("type")) for entry in load_recording(log)]
    assert ("in", "user") in said
    assert said[-1] == ("in", "control_request") or said[-1][0] == "out"
    async with bridle.connect(command=Replay(log).command) as session:
        assert (await (await session.send("hello")).result(LIMIT)).text == "Hi."


async def test_a_log_function_sees_lines_before_they_are_parsed(fake_cli: MakeFake) -> None:
    lines: list[tuple[str, bytes]] = []
    fake = fake_cli([{"prompt": True}, {"raw": "{not json\n"}, {"result": "x"}, {"raw": "half"}])
    log: Any = lambda *line: lines.append(line)  # noqa: E731
    async with bridle.connect(command=fake.command, log=log) as session:
        await (await session.send("hello")).result(LIMIT)
        assert session.counters.malformed == 1
    assert ("out", b"{not json") in lines
    assert any(line.startswith(b"half") for _, line in lines)
    assert [json.loads(line)["type"] for direction, line in lines if direction == "in"][1] == "user"


async def test_a_log_that_fails_harms_nothing(
    fake_cli: MakeFake, caplog: pytest.LogCaptureFixture
) -> None:
    def log(*_: object) -> None:
        raise OSError("No space left on device")

    assert (await bridle.run("hi", command=fake_cli(HELLO).command, log=log)).text == "Hi."
    assert "not logged any more: OSError: No space left" in caplog.text


async def test_a_log_that_can_not_be_opened_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidLaunch, match="log can't be written"):
        async with bridle.connect(command="true", log=tmp_path / "file" / "log"):
            pytest.fail("it must not be ready")


async def test_stderr_is_offered_in_groups(fake_cli: MakeFake) -> None:
    heard: list[str] = []
    fake = fake_cli([{"stderr": "one\n"}, {"stderr": "two\n"}, *HELLO])
    async with bridle.connect(command=fake.command, on_stderr=heard.append) as session:
        await (await session.send("hi")).result(LIMIT)
        assert session.stderr == "one\ntwo\n"
    assert heard == ["one\ntwo\n"]


async def test_a_mistake_in_on_stderr_harms_nothing(
    fake_cli: MakeFake, caplog: pytest.LogCaptureFixture
) -> None:
    fake = fake_cli([{"stderr": "one\n"}, *HELLO])
    wrong: Any = lambda: None  # noqa: E731
    assert (await bridle.run("hi", command=fake.command, on_stderr=wrong)).text == "Hi."
    assert "on_stderr failed" in caplog.text


def test_an_unknown_option_is_named_with_what_was_meant() -> None:
    with pytest.raises(TypeError, match="no option 'modle': did you mean 'model'"):
        bridle.connect(modle="opus")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"no option 'zzz'$"):
        bridle.connect(zzz=1)  # type: ignore[call-arg]


def test_the_keywords_of_run_are_those_of_connect() -> None:
    names = set(inspect.signature(bridle.connect).parameters) - {"launch"}
    assert set(ConnectOptions.__annotations__) == names | set(LaunchOptions.__annotations__)


async def test_a_cli_that_is_not_there_is_told_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(CliNotFound, match="npm install -g @anthropic-ai/claude-code"):
        async with bridle.connect(env={"PATH": str(tmp_path)}, inherit_env=False):
            pytest.fail("it must not be ready")


@pytest.mark.slow
async def test_twenty_sessions_live_side_by_side_on_one_thread(fake_cli: MakeFake) -> None:
    async def one(number: int) -> str:
        fake = fake_cli([{"prompt": True}, {"init": {}}, {"result": str(number)}])
        return (await bridle.run("go", command=fake.command)).text

    before = threads()
    assert await asyncio.gather(*map(one, range(20))) == [str(n) for n in range(20)]
    assert threads() == before


def threads() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


def test_a_script_that_ends_in_the_middle_leaves_no_warning(
    fake_cli: MakeFake, tmp_path: Path
) -> None:
    """As a user would write it: run, print, done."""
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, bridle\nprint(bridle.run_sync('hello', command=sys.argv[1:]).text)\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script), *fake_cli(HELLO).command],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == ("Hi.\n", "")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"approver": Allow()}, "is no function"),
        ({"elicit": 3}, "is no function"),
        ({"hooks": [1]}, "hooks is a bridle.Hooks"),
    ],
)
def test_a_handler_that_can_not_be_called_is_told_at_once(wrong: Any, says: str) -> None:
    with pytest.raises(TypeError, match=says):
        bridle.connect(**wrong)


def test_a_variable_that_is_no_text_is_told_at_once() -> None:
    with pytest.raises(InvalidLaunch, match="A must be text, not 1"):
        bridle.connect(env={"A": 1})  # type: ignore[dict-item]


async def test_a_session_that_was_stopped_is_not_started(fake_cli: MakeFake) -> None:
    connecting = bridle.connect(command=fake_cli([]).command)
    session = Session(connecting._transport, connecting._handlers, connecting._options)
    await session.stop()
    with pytest.raises(SessionClosed):
        await session.start()


async def test_npx_is_not_used_in_silence(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "npx").write_text("#!/bin/sh\nexit 3\n")
    (tmp_path / "npx").chmod(0o755)
    with pytest.raises(SessionEnded):
        async with bridle.connect(env={"PATH": str(tmp_path)}, inherit_env=False):
            pytest.fail("it must not be ready")
    assert "npx runs @anthropic-ai/claude-code@2.1.325" in caplog.text
