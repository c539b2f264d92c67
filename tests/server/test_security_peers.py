"""From a process under an agent, with the person's token in hand: nobody approves themselves."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import shlex
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import bridle
from bridle.server.errors import InsideAgent
from bridle.server.serving import ServeSettings, serve
from bridle.testing import fake_claude
from tests.supervisor.homes import ASKS, DONE, INIT, LIMIT, ME, PROMPT, Home, Step, asked

from .served import Served, served

HERE = Path(__file__).parent
STEAL = ("POST", "/api/v1/tokens", '{"role": "person", "name": "stolen"}')
HOWS = ["child", "no environment", "orphan"]
WAYS = ["tcp", "socket"]


class Reports:
    """Where probes tell what they were answered."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._told: asyncio.Queue[tuple[int, Any]] = asyncio.Queue()

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        status, body = json.loads(await reader.read())
        writer.close()
        self._told.put_nowait((status, json.loads(body) if body.startswith(("{", "[")) else body))

    async def next(self) -> tuple[int, Any]:
        async with asyncio.timeout(LIMIT):
            return await self._told.get()

    def words(
        self, served: Served, way: str, *request: str, trick: str = "", token: str | None = None
    ) -> list[str]:
        """The command of a probe."""
        server = served.ready.socket if way == "socket" else str(served.port)
        shown = token or ("-" if way == "socket" else served.token)
        program = [sys.executable, "-I", "-S", str(HERE / "probe.py")]
        method, path, body = (*request, "")[:3] if request else ("GET", "/api/v1/me", "")
        words = [*program, self.path, server, shown, method, path, body]
        return [*words, trick] if trick else words


@pytest.fixture
async def reports() -> AsyncIterator[Reports]:
    with tempfile.TemporaryDirectory() as folder:
        reports = Reports(f"{folder}/reports")
        async with await asyncio.start_unix_server(reports.take, reports.path):
            yield reports


@contextlib.contextmanager
def warnings() -> Iterator[asyncio.Queue[str]]:
    """What the door logs."""
    queue: asyncio.Queue[str] = asyncio.Queue()
    heard = logging.Handler()
    heard.emit = lambda record: queue.put_nowait(record.getMessage())  # type: ignore[method-assign]
    log = logging.getLogger("bridle.server.door")
    log.addHandler(heard)
    try:
        yield queue
    finally:
        log.removeHandler(heard)


async def agent_runs(served: Served, home: Home, words: list[str], how: str = "child") -> str:
    """Start an agent that runs this; the id of its session."""
    steps: list[Step] = [PROMPT, INIT, {"run": words, "how": how}, {"say": "done"}]
    command = playing(home, steps)
    record = await served.supervisor.create(cwd=home.work, by=ME, prompt="go", command=command)
    return record.id


def playing(home: Home, steps: list[Step]) -> list[str]:
    """The command of an agent that runs programs."""
    scenario = home.work / f"scenario-{len(list(home.work.iterdir()))}.json"
    scenario.write_bytes(msgspec.json.encode(steps))
    program = [sys.executable, "-I", "-S", str(HERE / "running_claude.py")]
    kit = str(Path(fake_claude.__file__).parent)
    return [*program, kit, "--scenario", str(scenario), "--report", f"{scenario}.report"]


async def run(reports: Reports, words: list[str]) -> tuple[int, Any]:
    """As a person does, in a terminal."""
    probe = await asyncio.create_subprocess_exec(*words)
    told = await reports.next()
    assert await probe.wait() == 0
    return told


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("how", HOWS)
async def test_a_process_under_an_agent_never_gets_a_persons_rights(
    home: Home, reports: Reports, way: str, how: str
) -> None:
    async with served(home.folder) as server:
        with warnings() as logged:
            words = reports.words(server, way)
            session = await agent_runs(server, home, words, how)
            status, body = await reports.next()
        assert (status, body["code"]) == (403, "agent_peer")
        assert body["about"] == {"session": session}
        assert session in body["detail"]
        assert session in logged.get_nowait()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("how", HOWS)
async def test_nor_does_one_under_an_agent_of_the_library(
    home: Home, reports: Reports, way: str, how: str
) -> None:
    async with served(home.folder) as server:
        steps: list[Step] = [PROMPT, INIT, {"run": reports.words(server, way), "how": how}, DONE]
        command = playing(home, steps)
        async with bridle.connect(command=command, cwd=home.work, policy="autonomous") as session:
            await session.send("go")
            status, body = await reports.next()
        assert (status, body["code"]) == (403, "agent_peer"), body


@pytest.mark.parametrize("way", WAYS)
async def test_an_agent_does_not_approve_what_another_asks(
    home: Home, reports: Reports, way: str
) -> None:
    async with served(home.folder) as server:
        asking = await home.start(server.supervisor, *ASKS)
        approval = await asked(server.supervisor, asking.id)
        path = f"/api/v1/approvals/{approval.id}/decide"
        decide = ("POST", path, '{"choice": {"type": "approve"}}')
        for trick in ("", "hit and run"):
            words = reports.words(server, way, *decide, trick=trick)
            with warnings() as logged:
                await agent_runs(server, home, words, "orphan")
                await reports.next()
                async with asyncio.timeout(LIMIT):
                    assert "refused" in await logged.get()
        assert (await server.supervisor.approvals.get(approval.id)).status == "pending"
        # The very same does it, from a person's terminal.
        status, body = await run(reports, reports.words(server, way, *decide))
        assert (status, body["status"]) == (200, "allowed"), body


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
async def test_nor_by_any_route_or_with_a_readers_token(
    home: Home, reports: Reports, way: str
) -> None:
    async with served(home.folder) as server:
        async with server.local() as person:
            made = await person.post("/api/v1/tokens", json={"role": "reader", "name": "x"})
        reader = made.json()["text"]
        cases = [(STEAL, ""), (("POST", "/api/v1/tickets"), "")]
        cases += [(("GET", "/api/v1/me"), reader), (("GET", "/"), "")]
        for request, token in cases:
            words = reports.words(server, way, *request, token=token or None)
            await agent_runs(server, home, words)
            status, body = await reports.next()
            assert (status, body["code"]) == (403, "agent_peer"), request
        assert all(token.name != "stolen" for token in server.house.tokens.list())


@pytest.mark.parametrize("way", WAYS)
async def test_a_process_that_is_no_agents_gets_them_while_agents_run(
    home: Home, reports: Reports, way: str
) -> None:
    async with served(home.folder) as server:
        await agent_runs(server, home, reports.words(server, way))
        assert (await reports.next())[0] == 403
        status, body = await run(reports, reports.words(server, way))
        assert (status, body["role"]) == (200, "person")


async def agent_with_a_token(
    served: Served, home: Home, reports: Reports, way: str, *request: str
) -> str:
    """Start an agent that asks this with its own token; the id of its session."""
    scenario = home.work / f"scenario-{len(list(home.work.iterdir()))}.json"
    program = [sys.executable, "-I", "-S", str(HERE / "running_claude.py")]
    kit = str(Path(fake_claude.__file__).parent)
    command = [*program, kit, "--scenario", str(scenario), "--report", f"{scenario}.report"]
    record = await served.supervisor.create(cwd=home.work, by=ME, command=command, start=False)
    _, text = await served.house.tokens.create("agent", "its own", record.id)
    words = reports.words(served, way, *request, token=text)
    steps: list[Step] = [PROMPT, INIT, {"run": words, "how": "child"}, {"say": "done"}]
    scenario.write_bytes(msgspec.json.encode(steps))
    await served.supervisor.start(record.id, prompt="go")
    return record.id


@pytest.mark.parametrize("way", WAYS)
async def test_an_agents_own_token_works_from_its_process(
    home: Home, reports: Reports, way: str
) -> None:
    async with served(home.folder) as server:
        session = await agent_with_a_token(server, home, reports, way)
        status, body = await reports.next()
        assert (status, body["role"], body["session"]) == (200, "agent", session)
        await agent_with_a_token(server, home, reports, way, *STEAL)
        status, body = await reports.next()
        assert (status, body["code"]) == (403, "forbidden")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("whose", ["another agent's", "of a root elsewhere", "of a permit"])
async def test_anothers_token_does_not_work_from_a_process_of_an_agent(
    home: Home, reports: Reports, way: str, whose: str
) -> None:
    async with served(home.folder) as server:
        if whose == "another agent's":
            other = await agent_runs(server, home, ["/bin/true"])
            wanted: dict[str, Any] = {"role": "agent", "name": "a", "session": other}
        else:
            kind = "root" if whose == "of a root elsewhere" else "permit"
            external = {"kind": kind, "folder": str(home.work)}
            wanted = {"role": "agent", "name": "a", "external": external}
        async with server.local() as person:
            text = (await person.post("/api/v1/tokens", json=wanted)).json()["text"]
        thief = await agent_runs(server, home, reports.words(server, way, token=text))
        status, body = await reports.next()
        assert (status, body["code"]) == (403, "agent_peer")
        assert body["about"] == {"session": thief}
        status, _ = await run(reports, reports.words(server, way, token=text))
        assert status == (403 if whose == "of a permit" else 200)


@pytest.mark.parametrize("way", WAYS)
async def test_a_ticket_is_not_taken_from_an_agent(home: Home, reports: Reports, way: str) -> None:
    async with served(home.folder) as server:
        path = server.ready.login.removeprefix(server.url)
        words = reports.words(server, way, "GET", path)
        words[words.index(server.token if way == "tcp" else "-")] = "-"
        await agent_runs(server, home, words)
        status, body = await reports.next()
        assert (status, body["code"]) == (403, "agent_peer")
        async with server.client() as browser:
            assert (await browser.get(path)).status_code == 303


TRICKS = {
    "in flight": ("unknown_peer", "unseen_peer", "agent_peer"),  # it may be too late to hide
    "hidden": ("agent_peer",),
    "zombie": ("agent_peer",),
    "headless": ("agent_peer",),
    "silent": ("agent_peer", "unknown_peer"),  # root sees it
    "hand over": ("agent_peer", "unknown_peer"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "trick",
    # What an ordinary user's tests hide, others that run beside them can't see.
    [pytest.param(one, marks=pytest.mark.slow if one == "silent" else ()) for one in TRICKS],
)
async def test_a_connection_whose_holder_hides_is_refused(
    home: Home, reports: Reports, trick: str, way: str
) -> None:
    async with served(home.folder) as server:
        words = reports.words(server, way, *STEAL, trick=trick)
        await agent_runs(server, home, words, "orphan")
        status, body = await reports.next()
        assert (status, body["code"] in TRICKS[trick]) == (403, True), body


@pytest.mark.parametrize("way", WAYS)
async def test_one_who_does_not_wait_for_the_answer_has_done_nothing(
    home: Home, reports: Reports, way: str
) -> None:
    async with served(home.folder) as server:
        with warnings() as logged:
            words = reports.words(server, way, *STEAL, trick="hit and run")
            await agent_runs(server, home, words, "orphan")
            await reports.next()
            async with asyncio.timeout(LIMIT):
                assert "refused" in await logged.get()
        assert all(token.name != "stolen" for token in server.house.tokens.list())


async def test_an_agent_of_another_home_is_one_too(
    home: Home, reports: Reports, tmp_path: Path
) -> None:
    async with served(home.folder) as server, served(tmp_path / "other") as other:
        await agent_runs(other, home, reports.words(server, "tcp"), "orphan")
        status, body = await reports.next()
        assert (status, body["code"], body["about"]) == (403, "agent_peer", {"session": ""})


async def test_one_who_was_started_by_an_agent_with_us_is_none_of_ours(
    home: Home, reports: Reports, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that is tried out inside of an agent works there as anywhere."""
    monkeypatch.setenv("BRIDLE_LAUNCH", "above")
    async with served(home.folder) as server:
        assert (await run(reports, reports.words(server, "tcp")))[0] == 200
        await agent_runs(server, home, reports.words(server, "tcp"))
        assert (await reports.next())[1]["code"] == "agent_peer"


@pytest.mark.parametrize("is_hidden", [False, True])
async def test_nobody_serves_a_home_from_inside_of_its_agents(
    home: Home, monkeypatch: pytest.MonkeyPatch, is_hidden: bool
) -> None:
    """The server would take the agent for one who is as good as itself."""
    async with home.open() as supervisor:
        record = await home.start(supervisor, *ASKS)
        await asked(supervisor, record.id)
        spool = home.spool(supervisor.get(record.id)).folder
    if is_hidden:
        assert not spool.exists()
    else:
        spool.mkdir()
    monkeypatch.setenv("BRIDLE_LAUNCH", f"above/{spool.name}/of-another")
    with pytest.raises(InsideAgent, match=r"this is an agent's process.*a terminal of your own"):
        await serve(ServeSettings(home=home.folder, port=0), signals=())
    assert not (home.folder / "token").exists()


@pytest.mark.slow
@pytest.mark.parametrize("how", HOWS)
async def test_an_agent_that_starts_the_server_gets_none(home: Home, how: str) -> None:
    program = [sys.executable, str(HERE / "serving_program.py"), str(home.folder), "0"]
    told = home.work / "told"
    os.mkfifo(told)
    words = ["/bin/sh", "-c", f"{shlex.join(program)} >{told} 2>&1"]
    async with home.open() as supervisor:
        steps: list[Step] = [PROMPT, INIT, {"run": words, "how": how}, {"say": "done"}]
        await supervisor.create(cwd=home.work, by=ME, prompt="go", command=playing(home, steps))
        async with asyncio.timeout(LIMIT):
            said = await asyncio.to_thread(told.read_text)
    assert "InsideAgent: this is an agent's process" in said
    assert not (home.folder / "token").exists()
