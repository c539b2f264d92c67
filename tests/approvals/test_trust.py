"""Folders that people trust, with what was in them when they did."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bridle.approvals import Agent, MayNotDecide, TrustedFolders
from bridle.journal import Journal

from ..journal.engines import Engine
from .helpers import ANN, BOB, TurnedClock


async def test_a_folder_is_trusted_with_what_was_shown_and_nothing_else(
    journal: Journal, clock: TurnedClock, tmp_path: Path
) -> None:
    folders = TrustedFolders(journal, clock.now)
    folder = str(tmp_path)
    assert not await folders.is_trusted(folder, "d1")
    trust = await folders.trust(folder, "d1", ["hook: make"], ANN)
    assert (trust.by, trust.at, trust.shown) == (ANN, clock.now(), ("hook: make",))
    assert await folders.is_trusted(folder, "d1")
    assert not await folders.is_trusted(folder, "d2"), "it has changed since"
    assert not await folders.is_trusted(str(tmp_path / "sub"), "d1")
    assert await folders.list() == [trust]


async def test_a_link_is_the_folder_that_it_leads_to(
    journal: Journal, clock: TurnedClock, tmp_path: Path
) -> None:
    folders = TrustedFolders(journal, clock.now)
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    await folders.trust(str(link), "d", [], ANN)
    assert await folders.is_trusted(str(real), "d")
    assert await folders.is_trusted(f"{link}/../real", "d")
    link.unlink()
    link.mkdir()
    assert not await folders.is_trusted(str(link), "d")


async def test_trust_is_there_after_a_restart_until_it_is_withdrawn(
    engine: Engine, clock: TurnedClock, tmp_path: Path
) -> None:
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/\xff\n" + b"x" * 200)
    async with engine.open() as journal:
        await TrustedFolders(journal, clock.now).trust(odd, "d", [], ANN)
    async with engine.open() as journal:
        folders = TrustedFolders(journal, clock.now)
        assert await folders.is_trusted(odd, "d")
        gone = await folders.distrust(odd, BOB)
        assert gone
        assert (gone.by, gone.is_withdrawn) == (BOB, True)
        assert not await folders.is_trusted(odd, "d")
        assert await folders.list() == []
        assert await folders.distrust(str(tmp_path), BOB) is None
        await folders.trust(odd, "d2", [], ANN)
        assert await folders.is_trusted(odd, "d2")


async def test_only_a_person_trusts(journal: Journal, clock: TurnedClock) -> None:
    folders = TrustedFolders(journal, clock.now)
    agent = Agent("root")
    with pytest.raises(MayNotDecide):
        await folders.trust("/x", "d", [], agent)  # type: ignore[arg-type]
    with pytest.raises(MayNotDecide):
        await folders.distrust("/x", agent)  # type: ignore[arg-type]
    assert not await folders.is_trusted("/x", "d")
