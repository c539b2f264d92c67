"""The Python of docs/streams.md follows a server."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bridle.server.house import House
from tests.supervisor.homes import Home

from .serving import grow, served, silent
from .sse import LIMIT

PAGE = Path(__file__).resolve().parents[3] / "docs" / "streams.md"


@pytest.mark.slow
async def test_the_client_of_the_page_follows_and_resumes(home: Home, house: House) -> None:
    names: dict[str, Any] = {}
    code = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert code
    exec(code[1], names)
    made = await silent(home, house.supervisor)
    last = await grow(house.supervisor, made.id, *"abc")
    async with served(house) as port, asyncio.timeout(LIMIT):
        # Each connection brings two events, so that it has to resume.
        url = f"http://127.0.0.1:{port}/api/v1/sessions/{made.id}/events?after={last - 3}&limit=2"
        seen = []
        async for name, data in names["follow"](url, "x"):
            seen.append((name, msgspec.json.decode(data)["seq"]))
            if len(seen) == 3:
                break
    assert seen == [("agent.stderr", seq) for seq in (last - 2, last - 1, last)]
