"""Whoever watches a folder is told which of its files have changed, and nobody is forgotten."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from bridle.process import wake as wake_module
from bridle.process.wake import ANYTHING, Polling, Told, Wakes, open_wakes

from .children import LIMIT
from .spools import inotify_files


class News:
    """What one watcher is told."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._news = asyncio.Event()

    def __call__(self, name: str) -> None:
        self.names.append(name)
        self._news.set()

    async def until(self, name: str) -> None:
        async with asyncio.timeout(LIMIT):
            while name not in self.names:
                self._news.clear()
                await self._news.wait()


@pytest_asyncio.fixture(params=["the best", "polling"])
async def any_wakes(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Wakes]:
    """Both ways to be woken."""
    wakes = await open_wakes(tmp_path, force=None if request.param == "the best" else "polling")
    assert isinstance(wakes.source, Polling) is (request.param == "polling")
    yield wakes
    wakes.close()


def append(path: Path, data: bytes = b".") -> None:
    with path.open("ab") as file:
        file.write(data)


def queue_size() -> int:
    return int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())


def folder(path: Path) -> Path:
    path.mkdir()
    return path


# --- both ways


async def test_files_that_come_grow_or_are_renamed_are_told(
    any_wakes: Wakes, tmp_path: Path
) -> None:
    here, news = folder(tmp_path / "here"), News()
    append(here / "old")
    any_wakes.watch(here, news)
    append(here / "new.tmp")
    await news.until("new.tmp")
    append(here / "old")
    await news.until("old")
    (here / "new.tmp").rename(here / "new")
    await news.until("new")


async def test_each_is_told_of_its_own_folder_and_two_of_the_same(
    any_wakes: Wakes, tmp_path: Path
) -> None:
    one, other = folder(tmp_path / "one"), folder(tmp_path / "other")
    first, second, third = News(), News(), News()
    watches = [any_wakes.watch(one, first), any_wakes.watch(one, second)]
    any_wakes.watch(other, third)
    append(one / "a")
    await first.until("a")
    await second.until("a")
    watches[0].close()
    watches[0].close()
    append(one / "b")
    append(other / "c")
    await second.until("b")
    await third.until("c")
    assert set(first.names) == {"a"}
    assert set(third.names) == {"c"}


async def test_who_fails_keeps_nobody_from_being_told(any_wakes: Wakes, tmp_path: Path) -> None:
    failures: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: failures.append(context["exception"]))

    def fail(_: str) -> None:
        raise ZeroDivisionError

    here, news = folder(tmp_path / "here"), News()
    any_wakes.watch(here, fail)
    any_wakes.watch(here, news)
    append(here / "a")
    await news.until("a")
    append(here / "b")
    await news.until("b")
    assert {type(failure) for failure in failures} == {ZeroDivisionError}


async def test_who_is_closed_by_another_is_not_told(any_wakes: Wakes, tmp_path: Path) -> None:
    here, news, late = folder(tmp_path / "here"), News(), News()
    any_wakes.watch(here, lambda _: second.close())
    second = any_wakes.watch(here, late)
    any_wakes.watch(here, news)
    append(here / "a")
    await news.until("a")
    assert late.names == []


async def test_a_folder_that_is_gone_harms_nobody(any_wakes: Wakes, tmp_path: Path) -> None:
    here, other, news = folder(tmp_path / "here"), folder(tmp_path / "other"), News()
    watch = any_wakes.watch(here, news)
    any_wakes.watch(other, news)
    here.rmdir()
    append(other / "a")
    await news.until("a")
    watch.close()


async def test_after_it_is_closed_nothing_is_told(any_wakes: Wakes, tmp_path: Path) -> None:
    news = News()
    watch = any_wakes.watch(folder(tmp_path / "here"), news)
    any_wakes.close()
    append(tmp_path / "here" / "a")
    await asyncio.sleep(0)
    watch.close()
    any_wakes.close()
    assert news.names == []


# --- inotify


async def test_one_instance_serves_hundreds_of_folders(wakes: Wakes, tmp_path: Path) -> None:
    before = inotify_files()
    everyone = [(folder(tmp_path / str(number)), News()) for number in range(400)]
    for here, news in everyone:
        wakes.watch(here, news)
    assert inotify_files() == before == 1
    for here, _ in everyone:
        append(here / "stdout")
    for _, news in everyone:
        await news.until("stdout")


async def test_many_changes_that_are_seen_together_are_told_once(
    wakes: Wakes, tmp_path: Path
) -> None:
    here, news = folder(tmp_path / "here"), News()
    for name in ("a", "b"):
        append(here / name)
    wakes.watch(here, news)
    for _ in range(50):
        append(here / "a")
        append(here / "b")
    await news.until("a")
    assert news.names == ["a", "b"]


async def test_when_the_kernel_loses_news_everybody_is_told_of_anything(
    wakes: Wakes, tmp_path: Path
) -> None:
    here, quiet = folder(tmp_path / "here"), folder(tmp_path / "quiet")
    loud, silent = News(), News()
    wakes.watch(here, loud)
    wakes.watch(quiet, silent)
    limit = queue_size()
    files = [os.open(here / name, os.O_CREAT | os.O_WRONLY) for name in ("a", "b")]
    # In turns: the same again and again is one event.
    for number in range(limit + 100):
        os.write(files[number % 2], b".")
    for fd in files:
        os.close(fd)
    await silent.until(ANYTHING)
    assert ANYTHING in loud.names


async def test_nothing_is_planned_while_nothing_happens(wakes: Wakes, tmp_path: Path) -> None:
    wakes.watch(folder(tmp_path / "here"), News())
    loop = asyncio.get_running_loop()
    assert [timer for timer in loop._scheduled if not timer.cancelled()] == []  # type: ignore[attr-defined]


# --- the choice


class Deaf:
    """A source that tells nothing, as on a file system of another machine."""

    def __init__(self, _: Told) -> None:
        self.is_closed = False
        made.append(self)

    def add(self, _: Path) -> int:
        return 1

    def drop(self, _: int) -> None:
        pass

    def close(self) -> None:
        self.is_closed = True


made: list[Deaf] = []


async def test_where_nothing_wakes_it_looks_again_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wake_module, "_sources", lambda: [Deaf])
    monkeypatch.setattr(wake_module, "PROBE_SECONDS", 0.05)
    wakes = await open_wakes(tmp_path)
    assert isinstance(wakes.source, Polling)
    assert made.pop().is_closed
    assert os.listdir(tmp_path) == []  # noqa: PTH208
    wakes.close()


async def test_where_no_instance_is_left_it_looks_again_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(told: Told) -> Deaf:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(wake_module, "_sources", lambda: [none_left])
    wakes = await open_wakes(tmp_path)
    assert isinstance(wakes.source, Polling)
    wakes.close()


async def test_a_folder_that_is_not_there_is_a_mistake(tmp_path: Path) -> None:
    before = inotify_files()
    with pytest.raises(FileNotFoundError):
        await open_wakes(tmp_path / "none")
    assert inotify_files() == before


async def test_it_looks_only_while_somebody_watches(tmp_path: Path) -> None:
    wakes = await open_wakes(tmp_path, force="polling")
    loop = asyncio.get_running_loop()

    def planned() -> int:
        return len([timer for timer in loop._scheduled if not timer.cancelled()])  # type: ignore[attr-defined]

    assert planned() == 0
    watches = [wakes.watch(folder(tmp_path / str(number)), News()) for number in range(5)]
    assert planned() == 1
    for watch in watches:
        watch.close()
    assert planned() == 0
