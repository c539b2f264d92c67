"""A user at a shell: the `bridle` command as a process of its own, and programs that follow.

Owns a home of its own, and ends what it has started, by pid.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import msgspec

from bridle.process.tree import Tree

LIMIT = 30.0
COMMAND = (sys.executable, "-m", "bridle.cli")


class User:
    """`env` is what the user's shell has beside a home of their own."""

    def __init__(self, folder: Path, env: Mapping[str, str]) -> None:
        self.home = folder / "bridle"
        self.work = folder / "work"
        self.work.mkdir(exist_ok=True)
        inherited = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        self._env = {
            **inherited,
            "HOME": str(folder),
            "CLAUDE_CONFIG_DIR": str(folder / "claude"),
            "BRIDLE_HOME": str(self.home),
            **env,
        }
        self._server: asyncio.subprocess.Process | None = None
        self.port = 0

    async def up(self) -> None:
        """Start the server, on the port that it had before; wait until it says where it is."""
        words = ("up", "--json", "--port", str(self.port))
        self._server = await self._start(*words)
        assert self._server.stdout
        async with asyncio.timeout(LIMIT):
            line = await self._server.stdout.readline()
        assert line, (await self._server.communicate())[1].decode()
        told = msgspec.json.decode(line)
        self.port = httpx.URL(told["url"]).port or 0

    async def kill_server(self) -> None:
        """kill -9."""
        assert self._server
        self._server.send_signal(signal.SIGKILL)
        await self._server.wait()

    async def end_server(self) -> str:
        """As a user does; gives what it said at the end."""
        assert self._server
        self._server.send_signal(signal.SIGTERM)
        async with asyncio.timeout(LIMIT):
            out, err = await self._server.communicate()
        assert self._server.returncode == 0, err.decode()
        return out.decode() + err.decode()

    async def run(self, *words: str, code: int = 0) -> str:
        """A command to its end; what it printed."""
        process = await self._start(*words)
        async with asyncio.timeout(LIMIT):
            out, err = await process.communicate()
        assert process.returncode == code, f"{words}: {err.decode()}"
        return out.decode()

    async def json(self, *words: str) -> Any:
        return msgspec.json.decode(await self.run(*words, "--json"))

    async def pending(self) -> Any:
        """The next approval that waits for somebody."""
        async with self.client() as client, asyncio.timeout(LIMIT):
            headers = {"Accept": "text/event-stream"}
            async with client.stream("GET", "/events", headers=headers) as response:
                async for line in response.aiter_lines():
                    if line.startswith("data: "):
                        told = msgspec.json.decode(line.removeprefix("data: "))
                        if told.get("status") == "pending":
                            return (await client.get(f"/approvals/{told['id']}")).json()
        raise AssertionError("the stream ended")

    async def _start(self, *words: str) -> asyncio.subprocess.Process:
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(
            *COMMAND, *words, cwd=self.work, env=self._env, stdout=pipe, stderr=pipe
        )

    def end(self) -> None:
        """Whatever still runs."""
        if self._server and self._server.returncode is None:
            self._server.kill()
        spools = self.home / "spool"
        for spool in spools.iterdir() if spools.exists() else ():
            Tree(0, spool.name).kill()

    async def aclose(self) -> None:
        """The same, and nothing of it is left for others to complain about."""
        if self._server and self._server.returncode is None:
            self._server.kill()
            await self._server.communicate()
        self.end()

    def client(self) -> httpx.AsyncClient:
        """A program with the person's token."""
        token = (self.home / "token").read_text().strip()
        return httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{self.port}/api/v1",
            headers={"Authorization": f"Bearer {token}"},
            timeout=LIMIT,
            trust_env=False,
            verify=False,
        )


class Follower:
    """A program that follows a session by SSE, and comes back whenever it is cut off."""

    def __init__(self, user: User, session: str) -> None:
        self._user = user
        self._session = session
        self._news = asyncio.Condition()
        #: What it was told: number, kind and body of each event.
        self.events: list[tuple[int, str, Any]] = []
        self.cuts = 0

    async def follow(self) -> None:
        while True:
            with suppress(httpx.TransportError):
                await self._once()
            self.cuts += 1
            await asyncio.sleep(0.05)  # as a browser does before it tries again

    async def _once(self) -> None:
        headers = {"Accept": "text/event-stream"}
        if self.events:
            headers["Last-Event-ID"] = str(self.events[-1][0])
        path = f"/sessions/{self._session}/events"
        async with (
            self._user.client() as client,
            client.stream("GET", path, headers=headers) as response,
        ):
            assert response.status_code == 200, await response.aread()
            fields: dict[str, str] = {}
            async for line in response.aiter_lines():
                if line:
                    name, _, value = line.partition(": ")
                    fields[name] = value
                    continue
                if "id" in fields:
                    await self._take(fields)
                fields = {}

    async def _take(self, fields: dict[str, str]) -> None:
        event = msgspec.json.decode(fields["data"])
        assert event["seq"] == int(fields["id"])
        async with self._news:
            self.events.append((event["seq"], fields["event"], event["body"]))
            self._news.notify_all()

    async def heard(self, kind: str, **facts: Any) -> Any:
        """Wait for an event of this kind whose body says this; its body."""

        def found() -> list[Any]:
            bodies = [body for _, one, body in self.events if one == kind]
            return [body for body in bodies if facts.items() <= body.items()]

        async with asyncio.timeout(LIMIT), self._news:
            await self._news.wait_for(found)
        return found()[0]


@asynccontextmanager
async def followers(user: User, session: str, count: int) -> AsyncIterator[list[Follower]]:
    """So many programs that follow, until the end."""
    found = [Follower(user, session) for _ in range(count)]
    tasks = [asyncio.ensure_future(one.follow()) for one in found]
    try:
        yield found
    finally:
        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(end, asyncio.CancelledError) for end in ends), ends
