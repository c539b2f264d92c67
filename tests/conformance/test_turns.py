"""Turns and messages."""

from __future__ import annotations

from bridle.protocol.content import local_command_output, session_id_of
from bridle.protocol.messages import Assistant, ContentBlockDelta, Result, StreamEvent, User
from bridle.protocol.system import ApiRetry, Init
from bridle.testing import Conversation, Turn, fail, text, thinking, tool_use

from .lab import Lab
from .talk import Judge


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


async def test_session_turn(lab: Lab) -> None:
    """A plain turn: from init to its result, and the session has its id"""
    async with lab.session(["Hello."]) as talk:
        assert talk.session.id is None
        heard = await talk.say("hi")
        assert (heard.result.subtype, heard.result.result) == ("success", "Hello.")
        assert heard.said() == ["Hello."]
        assert heard.messages[-1] is heard.result
        (init,) = heard.of(Init)
        assert init.claude_code_version == lab.version
        assert talk.session.id == heard.result.session_id
        assert not talk.session.is_busy


async def test_partial_turn(lab: Lab) -> None:
    """A turn with partial messages: the deltas add up to the final text"""
    words = "one two three four five six seven eight nine ten"
    script = [Turn(thinking("let me think"), text(words, chunk=7))]
    async with lab.session(script, partial_messages=True) as talk:
        heard = await talk.say("hi")
        events = [message.event for message in heard.of(StreamEvent)]
        deltas = [e.delta for e in events if isinstance(e, ContentBlockDelta)]
        assert "".join(getattr(delta, "text", "") for delta in deltas) == words
        assert heard.said() == [words]


async def test_several_turns(lab: Lab) -> None:
    """Several prompts, one after the other: init comes again with each"""
    async with lab.session(["First.", "Second."]) as talk:
        one, two = await talk.say("go on"), await talk.say("go on")
        assert [one.result.result, two.result.result] == ["First.", "Second."]
        assert len(one.of(Init)) == len(two.of(Init)) == 1
        assert two.result.total_cost_usd > one.result.total_cost_usd


async def test_parallel_tools(lab: Lab) -> None:
    """Two tools in one message: both results come, each block on a line of its own"""
    for name in ("a.txt", "b.txt"):
        (lab.cwd / name).write_text(f"inside {name}\n")
    reads = [tool_use("Read", file_path=str(lab.cwd / name)) for name in ("a.txt", "b.txt")]
    async with lab.session([Turn("Reading.", *reads), "Done."], approver=Judge()) as talk:
        heard = await talk.say("read both")
        results = talk.model.requests[-1].tool_results
        assert sorted(text.count("inside") for text in results.values()) == [1, 1]
        assert all(len(said.message.content) == 1 for said in heard.of(Assistant))


async def test_slash_command_output(lab: Lab) -> None:
    """The output of a slash command"""
    async with lab.session(["Hello."]) as talk:
        await talk.say("hi")
        heard = await talk.say("/cost")
        found = [
            (type(message), output)
            for message in heard.messages
            if not isinstance(message, Result) and (output := local_command_output(message))
        ]
        ((kind, output),) = found
        assert output.startswith("Total cost:")
        assert kind is (User if lab.is_old else Assistant)
        lab.saw("a `user` replay in tags" if lab.is_old else "a synthetic `assistant` message")


async def test_clear(lab: Lab) -> None:
    """/clear"""
    async with lab.session(["Hello.", "Again."]) as talk:
        before = (await talk.say("hi there")).result.session_id
        assert talk.session.id == before
        await talk.say("/clear")
        after = (await talk.say("again")).result.session_id
        assert talk.session.id == after
        assert (before == after) is lab.is_old
        assert ("hi there" in talk.model.requests[-1].everything) is lab.is_old
        unknown = "no such command: nothing is cleared, the session id stays"
        lab.saw(unknown if lab.is_old else "the session id changes")


async def test_api_error(lab: Lab) -> None:
    """The API refuses a request (400)"""
    refusal = Turn(fail(400, "scripted refusal"))
    async with lab.session(Conversation([], then=refusal)) as talk:
        result = (await talk.say("hi")).result
        assert "scripted refusal" in result.text
        assert result.subtype == "success"
        assert result.is_error
        assert result.api_error_status == (None if lab.is_old else 400)
        lab.saw("`success` with `is_error: true`" + ("" if lab.is_old else " and the status"))


async def test_api_retry(lab: Lab) -> None:
    """The API is overloaded (529), then not: the CLI tries again by itself"""
    async with lab.session([Turn(fail(529, retry_after=0)), "Recovered."]) as talk:
        heard = await talk.say("hi")
        assert heard.result.result == "Recovered."
        assert len(talk.model.requests) == 2
        told = bool(heard.of(ApiRetry))
        assert told is not lab.is_old
        lab.saw("told by `system/api_retry`" if told else "not told")


async def test_odd_characters(lab: Lab) -> None:
    """A prompt with U+2028, an emoji and quotes arrives as it was sent"""
    words = 'line\u2028separator \U0001f40e "quoted" \\back\u2029'
    async with lab.session(["Read."]) as talk:
        await talk.say(words)
        assert words.strip() in talk.model.requests[0].everything
