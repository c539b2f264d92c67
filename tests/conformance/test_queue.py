"""Prompts that wait: queued, merged, joined, taken back."""

from __future__ import annotations

import os

import pytest

from bridle.errors import NotSupported, PromptCancelled
from bridle.testing import Conversation, Hold, Turn, tool_use

from .lab import Fifo, Lab
from .talk import Judge, hear, reached


async def test_prompt_joins(lab: Lab) -> None:
    """A prompt that is sent while a command runs joins the running turn: one result for both"""
    ready, go = Fifo(lab.cwd / "ready"), Fifo(lab.cwd / "go")
    wait = tool_use("Bash", command="echo up > ready; read word < go", description="wait")
    script = Conversation([Turn(wait)], then="Both.")
    with go.open() as end:
        async with lab.session(script, approver=Judge()) as talk:
            first = await talk.session.send("one")
            assert await ready.read() == "up"
            second = await talk.session.send("two")
            await talk.has_read()
            os.write(end, b"on\n")
            one, two = await hear(first), await hear(second)
            assert "two" in str(talk.model.requests[1].messages)
            # Old CLIs show it beside the tool's result, and once more by itself.
            assert len(talk.model.requests) == (3 if lab.is_old else 2)
    assert one.result is two.result
    assert one.result.result == "Both."
    told = None if lab.is_old else [first.uuid, second.uuid]
    assert one.result.user_message_uuids == told
    shown_twice = "told by its replay alone, shown to the model twice"
    lab.saw("named by `user_message_uuids`" if told else shown_twice)


async def test_queued_messages(lab: Lab) -> None:
    """Prompts that are sent while the model streams: each ends with the result of its own turn"""
    hold = Hold()
    async with lab.session([Turn("Busy", hold, "no more."), "Two.", "Three."]) as talk:
        turns = [await talk.session.send("one")]
        await reached(hold)
        turns += [await talk.session.send(words) for words in ("two", "three")]
        await talk.has_read()
        hold.release()
        results = [(await hear(turn)).result for turn in turns]
        uuids = [turn.uuid for turn in turns]
        if lab.is_old:
            assert [result.result for result in results] == ["no more.", "Two.", "Three."]
            lab.saw("one turn for each")
        else:
            assert [result.result for result in results] == ["no more.", "Two.", "Two."]
            assert results[1].user_message_uuids == uuids[1:]
            lab.saw("merged into one turn, named by `user_message_uuids`")


async def test_interrupt_queue(lab: Lab) -> None:
    """Interrupt with prompts queued: the turn that runs ends, those that wait are then answered"""
    hold = Hold()
    async with lab.session([Turn("Busy", hold, "no more."), "Two.", "Three."]) as talk:
        first = await talk.session.send("one")
        await reached(hold)
        queued = [await talk.session.send(words) for words in ("two", "three")]
        told = await talk.session.interrupt()
        assert told.still_queued == ([] if lab.is_old else [turn.uuid for turn in queued])
        assert (await hear(first)).result.is_interrupted
        results = [(await hear(turn)).result for turn in queued]
        assert not any(result.is_interrupted for result in results)
        assert [r.result for r in results] == ["Two.", "Three." if lab.is_old else "Two."]
        lab.saw("not told which wait" if lab.is_old else "tells which wait: `still_queued`")


async def test_cancel_prompt(lab: Lab) -> None:
    """A queued prompt is taken back: its turn says so, the model never sees it"""
    hold = Hold()
    async with lab.session([Turn("Busy", hold, "no more."), "Two."]) as talk:
        first = await talk.session.send("one")
        await reached(hold)
        second = await talk.session.send("the second")
        assert second.uuid
        if lab.is_old:
            with pytest.raises(NotSupported):
                await talk.session.cancel_prompt(second.uuid)
            hold.release()
            assert (await hear(second)).result.result == "Two."
            lab.saw("can't be done: `NotSupported`, at once")
        else:
            assert (await talk.session.cancel_prompt(second.uuid)).cancelled
            with pytest.raises(PromptCancelled):
                await hear(second)
            hold.release()
            assert (await hear(first)).result.result == "no more."
            # What was taken up can't be taken back any more.
            assert not (await talk.session.cancel_prompt(str(first.uuid))).cancelled
            assert "the second" not in talk.model.requests[-1].everything
            lab.saw("`PromptCancelled`")


async def test_priority_now(lab: Lab) -> None:
    """A prompt with the priority "now", while the model streams"""
    hold = Hold()
    async with lab.session([Turn("Busy", hold, "no more."), "Two."]) as talk:
        first = await talk.session.send("one")
        await reached(hold)
        second = await talk.session.send("two", priority="now")
        await talk.has_read()
        hold.release()
        assert (await hear(first)).result.is_interrupted is not lab.is_old
        assert (await hear(second)).result.result == "Two."
        lab.saw("waits for its turn" if lab.is_old else "interrupts the turn that runs")


async def test_prompt_without_query(lab: Lab) -> None:
    """A prompt without a query: added to the conversation, the model is not asked"""
    async with lab.session(["Noted."]) as talk:
        if lab.is_old:
            with pytest.raises(NotSupported):
                await talk.session.send("by the way", query=False)
            lab.saw("can't be done: `NotSupported`, at once")
        else:
            note = await talk.session.send("by the way", query=False)
            assert (await hear(note)).result.num_turns == 0
            assert talk.model.requests == []
            assert (await talk.say("go on")).result.result == "Noted."
            assert "by the way" in talk.model.requests[0].everything
            lab.saw("has a result of its own, at once")
