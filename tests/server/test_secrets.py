"""Values that a session was given are kept from view, also by a server that never had them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from bridle.server.house import open_house
from bridle.supervisor import FromEnvironment, FromFile
from bridle.supervisor.environment import SecretValues
from bridle.views import stream
from tests.supervisor.homes import LIMIT, ME, PROMPT, TURN, Home, bodies, until

from .served import Served, served

#: By no form of its own is it known as one.
VALUE = "violet-hammock-wednesday"
OTHER = "quiet-orchard-teaspoon"
SAYS = [PROMPT, {"init": {}}, {"say": f"it is {VALUE}, in short"}, {"result": "done"}, PROMPT]


async def texts(server: Served, session: str) -> str:
    """All that a server tells of it, of every kind."""
    found = []
    async with server.client(server.token) as client:
        base = f"/api/v1/sessions/{session}"
        paths = ("", "/events?limit=500", "/transcript", "/env", "/usage")
        found += [(await client.get(base + path)).text for path in paths]
        events = json.loads(found[1])["items"]
        found += [(await client.get(f"{base}/events/{one['seq']}")).text for one in events]
        stream_of = {"accept": "text/event-stream"}
        for path in ("/events?limit=5", "/transcript?limit=5"):
            async with client.stream("GET", base + path, headers=stream_of) as answer:
                async for line in answer.aiter_lines():
                    found.append(line)
                    if "result" in line or len(found) > 300:
                        break
    return "\n".join(found)


async def started(server: Served, home: Home, *steps: Any, **options: Any) -> str:
    record = await home.start(server.supervisor, *(steps or SAYS), **options)
    is_over = lambda one: one.turns > 0 and one.state == "idle"  # noqa: E731
    await server.supervisor.wait(record.id, is_over, LIMIT)
    return record.id


@pytest.mark.slow
async def test_a_later_server_hides_what_an_agent_has_said_that_has_ended(home: Home) -> None:
    async with served(home.folder) as server:
        session = await started(server, home, env={"MOOD": VALUE})
        assert VALUE not in await texts(server, session)
    for _ in range(2):
        async with served(home.folder) as server:
            told = await texts(server, session)
            assert VALUE not in told
            assert "[redacted:MOOD]" in told
            async with server.client(server.token) as client:
                asked = await client.get(f"/api/v1/sessions/{session}/transcript?reveal=true")
            assert VALUE in asked.text


@pytest.mark.slow
async def test_a_later_server_hides_what_a_living_agent_is_yet_to_say(home: Home) -> None:
    later = [*TURN, PROMPT, {"say": f"it is {VALUE}"}, {"result": "done"}, PROMPT]
    async with served(home.folder, stop_agents=False) as server:
        session = await started(server, home, *later, env={"MOOD": VALUE})
        assert await bodies(server.supervisor, session, stream.SECRET_SAID) == []
    async with served(home.folder) as server:
        assert ("MOOD", VALUE) in server.supervisor.secret_values.all
        await server.supervisor.send(session, "and?", by="me")
        await server.supervisor.wait(session, lambda record: record.turns == 2, LIMIT)
        assert VALUE not in await texts(server, session)
        assert len(await bodies(server.supervisor, session, stream.SECRET_SAID)) == 1


async def test_where_no_server_is_up_it_is_hidden_as_well(home: Home) -> None:
    async with served(home.folder) as server:
        session = await started(server, home, env={"MOOD": VALUE})
    async with (
        home.open(keep=True, is_asleep=True) as asleep,
        open_house(home.folder, asleep) as house,
    ):
        record = house.supervisor.get(session)
        for event in await house.supervisor.journal.log.read(record.id, 0, 500):
            assert VALUE.encode() not in house.redactor.bytes(event.body)


@pytest.mark.slow
async def test_a_value_that_has_changed_since_is_still_known(home: Home, tmp_path: Path) -> None:
    file = tmp_path / "mood"
    file.write_text(VALUE)
    environ = {**os.environ, "THEIRS": OTHER}
    says = [PROMPT, {"init": {}}, {"say": f"{VALUE} {OTHER}"}, {"result": "x"}, PROMPT]
    async with served(home.folder, supervisor={"environ": environ}) as server:
        env = {"MOOD": FromFile(str(file)), "B": FromEnvironment("THEIRS")}
        session = await started(server, home, *says, env=env)
    file.write_text("another-one-entirely")
    async with served(home.folder) as server:
        told = await texts(server, session)
    assert VALUE not in told
    assert OTHER not in told


@pytest.mark.slow
async def test_what_agents_inherit_is_known_after_it_is_gone(home: Home) -> None:
    environ = {**os.environ, "THEIR_TOKEN": VALUE}
    async with served(home.folder, supervisor={"environ": environ}) as server:
        session = await started(server, home)
        assert VALUE not in await texts(server, session)
    async with served(home.folder) as server:
        assert VALUE not in await texts(server, session)


@pytest.mark.slow
async def test_one_that_is_given_at_a_resume_is_known_beside_the_first(home: Home) -> None:
    async with served(home.folder) as server:
        session = await started(server, home, env={"MOOD": VALUE})
    async with served(home.folder) as server:
        await server.supervisor.resume(session, prompt="again", env={"MOOD": OTHER})
        await until(server.supervisor, session, "idle")
        told = await texts(server, session)
        assert {("MOOD", VALUE), ("MOOD", OTHER)} <= server.supervisor.secret_values.all
    assert VALUE not in told


@pytest.mark.slow
async def test_what_others_have_said_of_it_outlives_the_session_that_had_it(home: Home) -> None:
    async with served(home.folder) as server:
        first = await started(server, home, env={"MOOD": VALUE})
        fork = await server.supervisor.fork(first, by=ME)
        other = await started(server, home)
        for session in (fork.id, first):
            await server.supervisor.stop(session, by="me")
            await until(server.supervisor, session, "stopped", "failed", "ended")
        await server.supervisor.delete(first)
        for session in (fork.id, other):
            assert VALUE not in await texts(server, session)
        await server.supervisor.delete(fork.id)
        assert VALUE not in await texts(server, other)
    async with served(home.folder) as server:
        assert VALUE not in await texts(server, other)


async def test_it_is_written_down_only_where_it_was_said(home: Home) -> None:
    async with served(home.folder) as server:
        await started(server, home, *TURN, PROMPT, env={"MOOD": VALUE})
    files = [file for file in home.folder.rglob("*") if file.is_file()]
    assert [file for file in files if VALUE.encode() in file.read_bytes()] == []


def test_what_is_kept_of_a_session_is_bounded() -> None:
    values = SecretValues()
    many = [(f"A_KEY_{number}", f"value-{number}-" + "x" * 4000) for number in range(50)]
    values.hold("a", many)
    body = json.dumps([value for _, value in many]).encode()
    found = values.said_in("b", [body])
    assert 10 < len(found) < 20
    assert values.said_in("b", [json.dumps(found[0][1]).encode()]) == []
    values.forget("a")
    assert set(found) == values.all
    values.hold("c", [("WORD", "default"), ("SHORT_KEY", "abc")])
    assert values.said_in("b", [b'"default abc"']) == []
