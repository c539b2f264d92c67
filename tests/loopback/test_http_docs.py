"""docs/api.md tells of every door, with whom it is for."""

from __future__ import annotations

import re
from pathlib import Path

from bridle.loopback import loopback_of
from bridle.loopback.http import open_doors
from tests.supervisor.homes import Home

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "api.md").read_text()


async def test_every_door_is_told_with_whom_it_is_for(home: Home) -> None:
    told = dict(re.findall(r"^\| `(/[a-z/]+)` \| ([a-z, ]+) \| .+ \|$", PAGE, re.M))
    async with home.open() as supervisor, open_doors(loopback_of(supervisor)) as doors:
        assert told == {door.path: ", ".join(door.roles) for door in doors}
        assert all(door.methods == ("POST",) for door in doors)
