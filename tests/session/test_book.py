"""Which prompt a result answers: by order, by name, merged, joined, interrupted, unprompted."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest

from bridle.errors import PromptCancelled, SessionEnded, TurnFailed
from bridle.process.transport import Exit
from bridle.protocol.messages import Assistant, Result, User
from bridle.session.book import TurnBook
from bridle.session.turns import Turn

from .conftest import StartSession
from .wire import delta, init, life, replay, result, say

LIMIT = 10


async def ended(turn: Turn) -> str:
    return (await turn.result(LIMIT)).text


def uuid_of(turn: Turn) -> str:
    assert turn.uuid
    return turn.uuid


async def kinds(turn: Turn) -> list[str]:
    return [type(message).__name__ async for message in turn]


async def test_a_turn_gives_its_messages_and_ends_with_its_result(start: StartSession) -> None:
    session, cli = await start()
    turn = await session.send("hello")
    cli.say(init(), say("Hi."), delta("x"), result("Hi."))
    assert await kinds(turn) == ["Init", "Assistant", "StreamEvent", "Result"]
    assert await ended(turn) == "Hi."
    assert turn.is_done
    assert not session.is_busy


async def test_a_prompt_carries_its_uuid(start: StartSession) -> None:
    session, cli = await start()
    turn = await session.send("hello")
    (prompt,) = cli.prompts()
    assert prompt["uuid"] == turn.uuid
    assert prompt["message"] == {"role": "user", "content": "hello"}


async def test_old_clis_answer_in_the_order_of_the_prompts(start: StartSession) -> None:
    session, cli = await start(version="2.0.75")
    one, two = await session.send("1"), await session.send("2")
    cli.say(init(), say("a"), result("A"), init(), say("b"), result("B"))
    assert [await ended(one), await ended(two)] == ["A", "B"]
    assert await kinds(two) == ["Init", "Assistant", "Result"]


async def test_an_old_cli_that_repeats_a_prompt_in_mid_turn_has_taken_it_up(
    start: StartSession,
) -> None:
    session, cli = await start(version="2.0.75")
    one, two, three = [await session.send(text) for text in "123"]
    cli.say(init(), replay(uuid_of(one)), say("a"), replay(uuid_of(two)), say("b"), result("AB"))
    cli.say(init(), replay(uuid_of(three)), result("C"))
    assert [await ended(turn) for turn in (one, two, three)] == ["AB", "AB", "C"]
    assert await kinds(one) == ["Init", "Assistant", "Assistant", "Result"]
    assert await kinds(two) == ["Assistant", "Result"]


async def test_repeated_prompts_are_shown_to_who_asked_for_them(start: StartSession) -> None:
    session, cli = await start(version="2.0.75", replay_user_messages=True)
    turn = await session.send("1")
    cli.say(init(), replay(uuid_of(turn)), result("A"))
    (user,) = [m async for m in turn if isinstance(m, User)]
    assert user.is_replay


async def test_merged_prompts_end_with_the_same_result(start: StartSession) -> None:
    session, cli = await start()
    one, two, three = [await session.send(text) for text in "123"]
    cli.say(init(uuid_of(one)), say("a"), result("A", uuid_of(one)))
    cli.say(init(uuid_of(two), uuid_of(three)), say("b"))
    cli.say(result("B", uuid_of(two), uuid_of(three)))
    assert [await ended(turn) for turn in (one, two, three)] == ["A", "B", "B"]
    assert await kinds(two) == await kinds(three) == ["Init", "Assistant", "Result"]


async def test_a_prompt_that_joins_a_running_turn_gets_the_rest_of_it(start: StartSession) -> None:
    session, cli = await start()
    one = await session.send("1")
    cli.say(init(uuid_of(one)), say("a"))
    two = await session.send("2")
    cli.say(life(uuid_of(two), "started"), say("b"), result("AB", uuid_of(one), uuid_of(two)))
    assert [await ended(one), await ended(two)] == ["AB", "AB"]
    assert await kinds(two) == ["CommandLifecycle", "Assistant", "Result"]


async def test_a_result_names_its_prompts_even_where_the_beginning_did_not(
    start: StartSession,
) -> None:
    session, cli = await start()
    one, two = await session.send("1"), await session.send("2")
    cli.say(init(names=True), result("B", uuid_of(two)))
    assert await ended(two) == "B"
    assert not one.is_done


async def test_prompts_that_are_repeated_before_a_turn_begins_are_of_it(
    start: StartSession,
) -> None:
    """As 2.1.100 merges them: nothing else tells."""
    session, cli = await start(version="2.1.100")
    one, *turns = [await session.send(words) for words in "1234"]
    cli.say(init(), replay(uuid_of(one)), result("A"))
    two, three, four = map(uuid_of, turns)
    cli.say(replay(two), replay(three), init(), replay(four), say("b"), result("B"))
    assert await ended(one) == "A"
    assert [await ended(turn) for turn in turns] == ["B", "B", "B"]
    assert not session.is_busy


async def test_prompts_that_are_started_before_a_turn_begins_are_of_it(
    start: StartSession,
) -> None:
    """As 2.1.207 tells it: neither the beginning nor the result names them."""
    session, cli = await start(version="2.1.207")
    unprompted = session.unprompted()
    one, two, three = [await session.send(words) for words in "123"]
    first, second, third = map(uuid_of, (one, two, three))
    cli.say(life(first, "queued"), life(first, "started"), init(names=True), result("A"))
    cli.say(life(first, "completed"), life(second, "started"), life(third, "started"))
    cli.say(init(names=True), say("b"), result("B"), life(second, "completed"))
    assert [await ended(turn) for turn in (one, two, three)] == ["A", "B", "B"]
    assert not session.is_busy
    cli.say(init(names=True), result("by itself", origin={"kind": "task-notification"}))
    assert await ended(await anext(unprompted)) == "by itself"


async def test_a_result_may_name_the_last_of_those_that_were_merged_alone(
    start: StartSession,
) -> None:
    """As 2.1.220 does."""
    session, cli = await start(version="2.1.220")
    one, two, three = [await session.send(words) for words in "123"]
    first, second, third = map(uuid_of, (one, two, three))
    cli.say(life(first, "started"), init(names=True), result("A", user_message_uuid=first))
    cli.say(life(second, "started"), life(third, "started"), init(names=True))
    cli.say(result("B", user_message_uuid=third))
    assert [await ended(turn) for turn in (one, two, three)] == ["A", "B", "B"]


async def test_a_prompt_that_is_completed_ends_though_no_result_has_named_it(
    start: StartSession,
) -> None:
    session, cli = await start()
    one, two, three = [await session.send(words) for words in "123"]
    first, second, third = map(uuid_of, (one, two, three))
    cli.say(init(first), life(second, "completed"), result("A"), life(third, "completed"))
    assert [await ended(turn) for turn in (one, two, three)] == ["A", "A", "A"]
    assert not session.is_busy


async def test_what_a_later_controller_takes_over_are_prompts_of_the_next_turn(
    start: StartSession,
) -> None:
    session, cli = await start(version="2.1.100")
    two, three = [await session.send(words) for words in "23"]
    cli.say(replay(uuid_of(two)), replay(uuid_of(three)))
    async with asyncio.timeout(LIMIT):
        while len(session._book.save().taken) < 2:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0)
    saved = session._book.save()
    assert saved.taken == [uuid_of(two), uuid_of(three)]
    later = TurnBook(1000, shows_replays=False)
    later.restore(saved)
    assert later.save() == saved
    cli.say(init(), result("B"))
    assert [await ended(turn) for turn in (two, three)] == ["B", "B"]


async def test_an_interrupted_turn_ends_and_the_queued_ones_follow(start: StartSession) -> None:
    session, cli = await start(version="2.0.75")
    one, two = await session.send("1"), await session.send("2")
    cli.say(init(), say("a"))
    await session.interrupt()
    cli.say(result("", subtype="error_during_execution"), init(), result("B"))
    assert (await one.result(LIMIT)).is_interrupted
    assert await ended(two) == "B"


async def test_an_unprompted_turn_answers_no_prompt(start: StartSession) -> None:
    session, cli = await start()
    unprompted = session.unprompted()
    first = asyncio.ensure_future(anext(unprompted))
    one = await session.send("1")
    cli.say(init(uuid_of(one)), result("A", uuid_of(one)))
    await ended(one)
    two = await session.send("2")
    cli.say(init(names=True), say("news"), result("N", origin={"kind": "task-notification"}))
    cli.say(init(uuid_of(two)), result("B", uuid_of(two)))
    turn = await asyncio.wait_for(first, LIMIT)
    assert turn.uuid is None
    assert await ended(turn) == "N"
    assert turn.origin == "task-notification"
    assert await kinds(turn) == ["Init", "Assistant", "Result"]
    assert await ended(two) == "B"


async def test_a_result_of_nobodys_prompt_does_not_end_a_waiting_one(start: StartSession) -> None:
    session, cli = await start()
    one = await session.send("1")
    cli.say(init(), result("N", origin={"kind": "task-notification"}))
    cli.say(init(uuid_of(one)), result("A", uuid_of(one)))
    assert await ended(one) == "A"


async def test_unprompted_turns_end_with_the_session(start: StartSession) -> None:
    session, cli = await start()
    unprompted = session.unprompted()
    cli.end(Exit(code=0))
    async with asyncio.timeout(LIMIT):
        assert [turn async for turn in unprompted] == []


async def test_a_result_that_can_not_be_read_ends_its_turn(start: StartSession) -> None:
    session, cli = await start()
    turn = await session.send("1")
    cli.say(init(), {"type": "result", "subtype": 7})
    with pytest.raises(TurnFailed, match="can't be read") as caught:
        await turn.result(LIMIT)
    assert b'"subtype":7' in caught.value.raw


async def test_a_cancelled_prompt_says_so(start: StartSession) -> None:
    session, cli = await start()
    one, two = await session.send("1"), await session.send("2")
    cli.say(init(uuid_of(one)), life(uuid_of(two), "cancelled"), result("A", uuid_of(one)))
    assert await ended(one) == "A"
    with pytest.raises(PromptCancelled):
        await two.result(LIMIT)


async def test_a_prompt_that_is_taken_back_ends_also_where_the_cli_says_no_more_of_it(
    start: StartSession,
) -> None:
    """As 2.1.100 does; the turn that runs goes on."""
    session, cli = await start(version="2.1.100")
    one, two, three = [await session.send(words) for words in "123"]
    cli.say(init(), say("a"))
    cli.replies["cancel_async_message"] = {"cancelled": True}
    assert (await session.cancel_prompt(uuid_of(two))).cancelled
    with pytest.raises(PromptCancelled):
        await ended(two)
    cli.say(result("A"), init(), result("C"))
    assert [await ended(one), await ended(three)] == ["A", "C"]


async def test_an_interrupted_prompt_that_is_called_cancelled_has_its_result(
    start: StartSession,
) -> None:
    session, cli = await start()
    one = await session.send("1")
    cli.say(init(uuid_of(one)), life(uuid_of(one), "cancelled"), result("A", uuid_of(one)))
    assert await ended(one) == "A"


async def test_the_end_of_the_cli_fails_what_is_open_after_what_was_said(
    start: StartSession,
) -> None:
    session, cli = await start(stderr="out of memory")
    one, two = await session.send("1"), await session.send("2")
    cli.say(init(), say("a"))
    cli.end(Exit(signal=9))
    assert [type(await anext(one)).__name__ for _ in range(2)] == ["Init", "Assistant"]
    with pytest.raises(SessionEnded) as caught:
        await anext(one)
    assert (caught.value.signal, caught.value.exit_code) == (9, None)
    assert "SIGKILL" in str(caught.value)
    assert "out of memory" in str(caught.value)
    with pytest.raises(SessionEnded):
        await two.result(LIMIT)
    with pytest.raises(SessionEnded):
        await session.send("3")


async def test_to_stop_waiting_does_not_interrupt_the_agent(start: StartSession) -> None:
    session, cli = await start()
    turn = await session.send("1")
    waiting = asyncio.ensure_future(turn.result())
    reading = asyncio.ensure_future(anext(aiter(turn)))
    await asyncio.sleep(0)
    for task in (waiting, reading):
        task.cancel()
    await asyncio.wait([waiting, reading])
    with pytest.raises(TimeoutError):
        await turn.result(0.001)
    assert cli.requests("interrupt") == []
    cli.say(init(), say("a"), result("A"))
    assert await kinds(turn) == ["Init", "Assistant", "Result"]


async def test_a_turn_that_nobody_holds_keeps_nothing(start: StartSession) -> None:
    session, cli = await start()
    turn = await session.send("1")
    gone = weakref.ref(turn._exchange)
    del turn
    gc.collect()
    assert gone() is None
    cli.say(init(), say("a"), result("A"))
    async with asyncio.timeout(LIMIT):
        while session.is_busy:  # noqa: ASYNC110 - a turn that nobody holds has nobody to tell
            await asyncio.sleep(0)


async def test_a_tap_sees_what_belongs_to_no_turn(start: StartSession) -> None:
    session, cli = await start()
    async with session.messages() as tap:
        cli.say(say("between turns"))
        seen = [await asyncio.wait_for(anext(tap), LIMIT)]
        turn = await session.send("1")
        cli.say(init(), result("A"))
        seen += [await asyncio.wait_for(anext(tap), LIMIT) for _ in range(2)]
    assert [type(message).__name__ for message in seen] == ["Assistant", "Init", "Result"]
    assert await kinds(turn) == ["Init", "Result"]
    with pytest.raises(StopAsyncIteration):
        await anext(tap)


async def test_the_session_id_is_that_of_the_latest_turn(start: StartSession) -> None:
    session, cli = await start()
    assert session.id is None
    one = await session.send("1")
    cli.say(init(session_id="stale"), say("a", session_id="first"), result("A", session_id="first"))
    await ended(one)
    assert session.id == "first"
    two = await session.send("/clear")
    cli.say({"type": "conversation_reset", "new_conversation_id": "x", "session_id": "first"})
    cli.say(init(session_id="first"), result("B", session_id="second"))
    await ended(two)
    assert session.id == "second"


async def test_a_result_without_a_beginning_answers_the_oldest_prompt(start: StartSession) -> None:
    session, cli = await start()
    turn = await session.send("1")
    cli.say(result("no such session", is_error=True))
    found = [message async for message in turn]
    assert [type(message) for message in found] == [Result]
    assert (await turn.result(LIMIT)).is_error


async def test_a_prompt_may_have_several_parts(start: StartSession) -> None:
    session, cli = await start()
    turn = await session.send([" with ", "parts"])
    cli.say(init(), say("a"), result("A"))
    assert [m async for m in turn if isinstance(m, Assistant)]
    (prompt,) = cli.prompts()
    assert [block["text"] for block in prompt["message"]["content"]] == [" with ", "parts"]


async def test_who_waits_for_a_message_holds_its_turn(start: StartSession) -> None:
    session, cli = await start()
    waiting = asyncio.ensure_future(anext(await session.send("1")))
    await asyncio.sleep(0)
    gc.collect()
    cli.say(init())
    assert type(await asyncio.wait_for(waiting, LIMIT)).__name__ == "Init"


async def test_each_who_asks_for_unprompted_turns_gets_all_of_them(start: StartSession) -> None:
    session, cli = await start()
    first, second = session.unprompted(), session.unprompted()
    cli.say(init(names=True), say("news"), result("N", origin={"kind": "task-notification"}))
    for turns in (first, second):
        turn = await asyncio.wait_for(anext(turns), LIMIT)
        assert await kinds(turn) == ["Init", "Assistant", "Result"]


async def test_taps_that_are_opened_after_the_end_are_at_their_end(start: StartSession) -> None:
    session, _ = await start()
    await session.stop()
    async with asyncio.timeout(LIMIT):
        assert [message async for message in session.messages()] == []
        assert [turn async for turn in session.unprompted()] == []


async def test_what_the_cli_said_before_it_ended_is_in_the_error(start: StartSession) -> None:
    session, cli = await start()
    async with session.messages() as tap:
        cli.say(
            result(
                "",
                subtype="error_during_execution",
                is_error=True,
                result=None,
                errors=["No conversation found"],
            )
        )
        await asyncio.wait_for(anext(tap), LIMIT)
    cli.end(Exit(code=1))
    with pytest.raises(SessionEnded, match="exited with 1, and said: No conversation found"):
        await session.send("hello")


async def test_a_result_that_names_another_prompt_ends_nobodys_turn(start: StartSession) -> None:
    session, cli = await start()
    turn = await session.send("1")
    cli.say(init(names=True), result("not yours", "00000000-0000-4000-8000-0000000000ff"))
    cli.say(init(uuid_of(turn)), result("yours", uuid_of(turn)))
    assert await ended(turn) == "yours"


async def test_a_tap_that_was_dropped_gathers_nothing(start: StartSession) -> None:
    session, _ = await start()
    tap, turns = session.messages(), session.unprompted()
    assert (len(session._book._open_taps()), len(session._book._unprompted)) == (1, 1)
    del tap, turns
    gc.collect()
    assert (len(session._book._open_taps()), len(session._book._unprompted)) == (0, 0)


async def test_an_error_that_is_raised_again_does_not_grow(start: StartSession) -> None:
    session, cli = await start()
    turn = await session.send("1")
    cli.end(Exit(code=1))
    depths = []
    for _ in range(3):
        with pytest.raises(SessionEnded) as caught:
            await turn.result(LIMIT)
        depths.append(len(caught.traceback))
    assert len(set(depths)) == 1


async def test_a_prompt_that_joins_an_unprompted_turn_ends_with_it(start: StartSession) -> None:
    session, cli = await start()
    unprompted = session.unprompted()
    cli.say(init(names=True), say("news"))
    turn = await asyncio.wait_for(anext(unprompted), LIMIT)
    mine = await session.send("1")
    cli.say(life(uuid_of(mine), "started"), result("both", uuid_of(mine)))
    assert [await ended(turn), await ended(mine)] == ["both", "both"]
