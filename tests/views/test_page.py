"""The page on views: its Python runs, and every name is in it."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

import bridle.views
from bridle.journal import NewEvent, memory_journal
from bridle.views import entries

from .helpers import Told

PAGE = Path(__file__).resolve().parents[2] / "docs" / "views.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.mark.slow
def test_the_first_block_shows_a_call_that_its_result_joins(
    capsys: pytest.CaptureFixture[str],
) -> None:
    exec(BLOCKS[0], {"__name__": "page"})
    assert capsys.readouterr().out.splitlines() == [
        "1 added, 0 changed",
        "0 added, 1 changed",
        "1. Bash: README.md (exit code 0)",
    ]


async def test_the_second_block_follows_a_journal(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {"__name__": "page"}
    exec(BLOCKS[1], names)
    told = Told()
    told.text("hello")
    told.result(0.25)
    async with memory_journal() as journal, asyncio.timeout(10):
        new = [NewEvent(entry.kind, entry.body, entry.at) for entry in told.entries]
        await journal.log.append("s", new, 0)
        following = asyncio.create_task(names["follow"](journal, "s"))
        seen = ""
        while "0.2500 $" not in seen:
            await asyncio.sleep(0)
            seen += capsys.readouterr().out
        following.cancel()
        await asyncio.wait([following])
    assert seen.startswith("1 Text\n")


def test_every_name_of_the_views_is_documented() -> None:
    told = set(re.findall(r"\w+", PAGE.read_text()))
    sorts = {
        name
        for name, kind in vars(entries).items()
        if isinstance(kind, type)
        and issubclass(kind, msgspec.Struct)
        and kind.__module__ == entries.__name__
        and not name.startswith("_")
    }
    assert (set(bridle.views.__all__) | sorts) - told == set()
