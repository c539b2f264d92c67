"""Turns and messages."""

from __future__ import annotations

import asyncio

from bridle.protocol.content import local_command_output, session_id_of
from bridle.protocol.events import MessageReceived
from bridle.protocol.messages import Assistant, ContentBlockDelta, Result, StreamEvent, User
from bridle.protocol.requests import Initialize
from bridle.protocol.system import Init
from bridle.testing import Conversation, Hold, Turn, fail, text, thinking, tool_use

from .lab import Lab, allow


async def test_plain_turn(lab: Lab) -> None:
    """A plain turn, without initialize"""
    async with lab.run(["Hello."]) as run:
        run.cli.prompt("hi")
        result = await run.cli.result()
        assert (result.subtype, result.result, result.is_error) == ("success", "Hello.", False)
        (init,) = run.cli.messages(Init)
        assert init.claude_code_version == lab.version
        said = run.cli.messages(Assistant)
        assert session_id_of(said[0]) == result.session_id
        assert run.model.unplayed == 0


async def test_partial_turn(lab: Lab) -> None:
    """A turn with partial messages: the deltas add up to the final text"""
    words = "one two three four five six seven eight nine ten"
    async with lab.run(
        [Turn(thinking("let me think"), text(words, chunk=7))], flags=["--include-partial-messages"]
    ) as run:
        run.cli.prompt("hi")
        await run.cli.result()
        events = [message.event for message in run.cli.messages(StreamEvent)]
        deltas = [e.delta for e in events if isinstance(e, ContentBlockDelta)]
        assert "".join(getattr(delta, "text", "") for delta in deltas) == words


async def test_several_turns(lab: Lab) -> None:
    """Several prompts, one after the other: init comes again with each"""
    async with lab.run(["First.", "Second."]) as run:
        for expected in ("First.", "Second."):
            run.cli.prompt("go on")
            assert (await run.cli.result()).result == expected
        assert len(run.cli.messages(Init)) == 2
        one, two = run.cli.messages(Result)
        assert two.total_cost_usd > one.total_cost_usd


async def test_queued_messages(lab: Lab) -> None:
    """Prompts that are sent while a turn runs"""
    hold = Hold()
    async with lab.run([Turn("Busy", hold, "no more."), "Two.", "Three."]) as run:
        run.cli.prompt("one", uuid="00000000-0000-4000-8000-000000000001")
        await asyncio.wait_for(hold.reached.wait(), 60)
        run.cli.prompt("two", uuid="00000000-0000-4000-8000-000000000002")
        run.cli.prompt("three", uuid="00000000-0000-4000-8000-000000000003")
        hold.release()
        await run.cli.result()
        second = await run.cli.result()
        if lab.is_old:
            assert (await run.cli.result()).result == "Three."
            lab.saw("one turn for each")
        else:
            assert second.user_message_uuids == [
                "00000000-0000-4000-8000-000000000002",
                "00000000-0000-4000-8000-000000000003",
            ]
            lab.saw("merged into one turn, named by `user_message_uuids`")


async def test_parallel_tools(lab: Lab) -> None:
    """Two tools in one message: both results come, each block on a line of its own"""
    for name in ("a.txt", "b.txt"):
        (lab.cwd / name).write_text(f"inside {name}\n")
    reads = [tool_use("Read", file_path=str(lab.cwd / name)) for name in ("a.txt", "b.txt")]
    async with lab.run([Turn("Reading.", *reads), "Done."], respond=allow) as run:
        run.cli.prompt("read both")
        await run.cli.result()
        results = run.model.requests[-1].tool_results
        assert sorted(text.count("inside") for text in results.values()) == [1, 1]
        assert all(len(said.message.content) == 1 for said in run.cli.messages(Assistant))


async def test_slash_command_output(lab: Lab) -> None:
    """The output of a slash command"""
    async with lab.run(["Hello."]) as run:
        run.cli.prompt("hi")
        await run.cli.result()
        run.cli.prompt("/cost")
        await run.cli.result()
        found = [
            (type(event.message), output)
            for event in run.cli.events
            if isinstance(event, MessageReceived)
            and not isinstance(event.message, Result)
            and (output := local_command_output(event.message))
        ]
        ((kind, output),) = found
        assert output.startswith("Total cost:")
        assert kind is (User if lab.is_old else Assistant)
        lab.saw("a `user` replay in tags" if lab.is_old else "a synthetic `assistant` message")


async def test_clear(lab: Lab) -> None:
    """/clear"""
    async with lab.run(["Hello.", "Again."]) as run:
        run.cli.prompt("hi")
        before = (await run.cli.result()).session_id
        run.cli.prompt("/clear")
        await run.cli.result()
        run.cli.prompt("again")
        after = (await run.cli.result()).session_id
        assert (before == after) is lab.is_old
        lab.saw("the session id stays" if lab.is_old else "the session id changes")


async def test_api_error(lab: Lab) -> None:
    """The API refuses a request (400)"""
    refusal = Turn(fail(400, "scripted refusal"))
    async with lab.run(Conversation([], then=refusal)) as run:
        run.cli.prompt("hi")
        result = await run.cli.result()
        assert "scripted refusal" in (result.result or "")
        assert result.subtype == "success"
        assert result.is_error
        assert result.api_error_status == (None if lab.is_old else 400)
        lab.saw("`success` with `is_error: true`" + ("" if lab.is_old else " and the status"))


async def test_api_retry(lab: Lab) -> None:
    """The API is overloaded (529), then not: the CLI tries again by itself"""
    async with lab.run([Turn(fail(529, retry_after=0)), "Recovered."]) as run:
        run.cli.prompt("hi")
        assert (await run.cli.result()).result == "Recovered."
        assert len(run.model.requests) == 2


async def test_odd_characters(lab: Lab) -> None:
    """A prompt with U+2028, an emoji and quotes arrives as it was sent"""
    words = 'line\u2028separator \U0001f40e "quoted" \\back\u2029'
    async with lab.run(["Read."], initialize=Initialize()) as run:
        run.cli.prompt(words)
        await run.cli.result()
        assert words.strip() in run.model.requests[0].everything
