"""How streams come to their end, and who may follow them for how long."""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest

from bridle.server.access import Caller
from bridle.server.house import House
from tests.server.served import served as served_home
from tests.supervisor.homes import TURN, WORKS, Home, until

from .conftest import OpenHouse
from .serving import READER, agent, followed, grow, served, silent, text_of
from .sse import Sse, Told, ask, follow

STREAMS = ("/sessions/{}/events?after=tip", "/sessions/{}/transcript?after=tip")


@pytest.mark.parametrize("path", [*STREAMS, "/events"])
async def test_a_server_that_ends_says_good_bye(home: Home, house: House, path: str) -> None:
    made = await silent(home, house.supervisor)
    async with followed(house, path.format(made.id)) as follower:
        await follower.joined()
        house.closing.set()
        assert (await follower.until("bye")).json == {}
        assert await follower.next() is None


@pytest.mark.slow
async def test_a_whole_server_ends_though_some_follow_and_one_is_stuck(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    async with AsyncExitStack() as stack, served_home(home.folder) as server:
        made = await silent(home, server.supervisor)
        headers = {"Accept": "text/event-stream", "Authorization": f"Bearer {server.token}"}
        path = f"/sessions/{made.id}/events?after=tip"
        stuck = ask(server.port, path, headers, is_narrow=True)
        assert (await stack.enter_async_context(stuck)).status == 200
        async with ask(server.port, path, headers) as follower:
            for _ in range(100):
                await grow(server.supervisor, made.id, "x" * 100_000)
                await follower.told()
            server.house.closing.set()  # as it is when the server is told to end
            await follower.until("bye")
            assert await follower.next() is None
    assert [one.getMessage() for one in caplog.records if one.levelname == "ERROR"] == []


async def test_who_comes_while_the_server_ends_is_sent_away(home: Home, house: House) -> None:
    made = await silent(home, house.supervisor)
    house.streams.close()
    async with followed(house, f"/sessions/{made.id}/events") as follower:
        await follower.until("bye")
        assert await follower.next() is None


@pytest.mark.parametrize("path", STREAMS)
async def test_the_stream_of_a_deleted_session_is_gone(home: Home, house: House, path: str) -> None:
    made = await silent(home, house.supervisor)
    other = await silent(home, house.supervisor)
    async with (
        served(house) as port,
        follow(port, path.format(made.id)) as follower,
        follow(port, f"/sessions/{other.id}/events?after=tip") as unconcerned,
    ):
        await follower.joined()
        await unconcerned.joined()
        await house.supervisor.delete(made.id)
        assert (await follower.told()).name == "gone"
        assert await follower.next() is None
        async with ask(port, path.format(made.id), {"Accept": "text/event-stream"}) as answer:
            assert answer.status == 404
        await grow(house.supervisor, other.id, "still here")
        assert text_of(await unconcerned.told()) == "still here"


async def test_an_agent_follows_itself_and_what_is_below_it(home: Home, house: House) -> None:
    root = await home.start(house.supervisor, *TURN)
    below = await silent(home, house.supervisor, parent=root.id)
    beside = await silent(home, house.supervisor)
    wanted = {root.id: 200, below.id: 200, beside.id: 404}
    async with served(house, agent(root.id)) as port:
        for session, status in wanted.items():
            for path in STREAMS:
                headers = {"Accept": "text/event-stream"}
                async with ask(port, path.format(session), headers) as answer:
                    assert answer.status == status, (session, path)
            for path in ("events", "events/1", "transcript", "files", "timeline"):
                async with ask(port, f"/sessions/{session}/{path}") as answer:
                    assert answer.status == status, (session, path)
        async with ask(port, "/events") as answer:
            assert answer.status == 403


async def test_an_agent_does_not_follow_what_was_handed_over(home: Home, house: House) -> None:
    supervisor = house.supervisor
    root = await home.start(supervisor, *WORKS, orphans="hand over")
    below = await home.start(supervisor, *WORKS, parent=root.id)
    await until(supervisor, below.id, "running")
    path = f"/sessions/{below.id}/events?after=tip&kinds=session.handed_over"
    async with followed(house, path, caller=agent(root.id)) as follower:
        await follower.joined()
        await supervisor.stop(root.id)
        await follower.until("gone")
        assert await follower.next() is None


async def test_who_has_lost_their_token_is_turned_out(home: Home, opened: OpenHouse) -> None:
    async with opened(heartbeat=0.1) as house:
        made = await silent(home, house.supervisor)
        token, _ = await house.tokens.create("reader", "screen")
        caller = Caller(role="reader", name="screen", token=token.id)
        async with followed(house, f"/sessions/{made.id}/events", caller=caller) as follower:
            await follower.told()
            await house.tokens.revoke(token)
            await follower.until("gone")
            assert await follower.next() is None


async def test_secrets_are_hidden_unless_a_person_wants_them(home: Home, house: House) -> None:
    made = await silent(home, house.supervisor)
    secret = "sk-ant-api03-" + "Ab1" * 10
    last = await grow(house.supervisor, made.id, f"the key is {secret}")
    paths = [f"/sessions/{made.id}/events?after={last - 1}", f"/sessions/{made.id}/transcript?"]
    async with served(house) as port:
        for path in (*paths, f"/sessions/{made.id}/events/{last}?"):
            async with ask(port, path) as answer:
                body = await answer.body()
                assert secret.encode() not in body
                assert b"redacted" in body
            async with ask(port, f"{path}&reveal=true") as answer:
                assert secret.encode() in await answer.body()
        for path in paths:
            async with (
                follow(port, path) as hidden,
                follow(port, f"{path}&reveal=true") as revealed,
            ):
                assert secret not in (await told_with(hidden, "the key is")).data
                assert secret in (await told_with(revealed, "the key is")).data


@pytest.mark.parametrize("caller", [READER, agent("x")], ids=["reader", "agent"])
async def test_others_than_people_reveal_nothing(home: Home, house: House, caller: Caller) -> None:
    made = await silent(home, house.supervisor)
    seen = caller if caller.role == "reader" else agent(made.id)
    paths = ["events", "events/1", "transcript", "files", "timeline"]
    async with served(house, seen) as port:
        for path in paths:
            async with ask(port, f"/sessions/{made.id}/{path}?reveal=true") as answer:
                assert answer.status == 403, path


async def told_with(follower: Sse, words: str) -> Told:
    while words not in (told := await follower.told()).data:
        pass
    return told
