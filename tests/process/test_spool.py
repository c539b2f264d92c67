"""A launch's folder: what is in it, who may see it, and that it holds nothing open."""

from __future__ import annotations

import fcntl
import os
import stat
from pathlib import Path

import pytest

from bridle.process.spool import ProcessId, Spool, current_boot
from bridle.process.transport import Exit

from .spools import RunShim, open_files

PAGE = os.sysconf("SC_PAGE_SIZE")


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    spool = Spool(tmp_path / "some" / "spool")
    spool.make()
    return spool


def test_nobody_else_may_see_it(spool: Spool) -> None:
    modes = {path.name: stat.filemode(path.stat().st_mode) for path in spool.folder.iterdir()}
    assert stat.filemode(spool.folder.stat().st_mode) == "drwx------"
    assert modes.pop("doorbell") == "prw-------"
    assert set(modes) == {"lock", "inbox", "stdout", "stderr"}
    assert set(modes.values()) == {"-rw-------"}


def test_to_make_it_again_leaves_what_is_there(spool: Spool) -> None:
    spool.append(b"there")
    spool.make()
    assert spool.read_inbox(0, 100) == b"there"


def test_what_is_appended_is_read_from_any_place(spool: Spool) -> None:
    spool.append(b"one\n")
    spool.append(b"")
    spool.append(b"two\n")
    assert spool.inbox_size() == 8
    assert spool.read_inbox(4, 100) == b"two\n"
    assert spool.read_inbox(2, 3) == b"e\nt"
    assert spool.read_inbox(100, 3) == b""


def test_a_bell_that_nobody_hears_is_told(spool: Spool) -> None:
    assert not spool.ring()
    assert not spool.ring(end=True)


def test_a_bell_that_is_rung_too_often_is_still_rung(spool: Spool) -> None:
    hears = os.open(spool.path("doorbell"), os.O_RDWR | os.O_NONBLOCK)
    while spool.ring(end=True):
        pass
    assert spool.ring()
    assert set(os.read(hears, 1 << 20)) == set(b"e")
    os.close(hears)


def test_without_its_folder_it_is_empty_and_says_so(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "none")
    assert not spool.is_held()
    assert not spool.ring()
    assert (spool.shim(), spool.cli(), spool.exit()) == (None, None, None)
    assert (spool.inbox_size(), spool.read("stdout", 0, 10), spool.punch("stdout", 1 << 20)) == (
        0,
        b"",
        0,
    )
    assert spool.abandon()
    spool.remove()
    with pytest.raises(FileNotFoundError):
        spool.append(b"x")


# --- who lives


async def test_it_is_held_while_the_shim_lives_and_can_not_be_abandoned(run_shim: RunShim) -> None:
    shimmed = await run_shim(["/bin/cat"])
    await shimmed.until(lambda: shimmed.spool.shim() is not None)
    shimmed.spool.append(b"hi\n")
    shimmed.spool.ring()
    # Before it is a program of its own, the child holds what the shim holds.
    await shimmed.until(lambda: shimmed.spool.size("stdout") > 0)
    assert shimmed.spool.is_held()
    assert not shimmed.spool.abandon()
    assert not shimmed.spool.is_abandoned()
    shimmed.process.kill()
    shimmed.left()
    assert not shimmed.spool.is_held()
    assert shimmed.spool.abandon()
    assert shimmed.spool.is_abandoned()


def test_two_who_look_do_not_take_each_other_for_a_shim(spool: Spool) -> None:
    other = os.open(spool.path("lock"), os.O_RDWR)
    fcntl.flock(other, fcntl.LOCK_SH)
    assert not spool.is_held()
    os.close(other)


def test_a_process_of_another_boot_is_not_alive() -> None:
    born = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    us = ProcessId(os.getpid(), born, current_boot())
    assert us.seen()
    assert ProcessId(us.pid, us.born + 1, us.boot).seen() is None
    assert ProcessId(us.pid, us.born, "another").seen() is None


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("0 -\n", Exit(code=0)),
        ("- 15\n", Exit(signal=15)),
        ("", None),
        ("0", None),
        ("x -", None),
        ("-1 -", None),
        ("\xff\n", None),
    ],
)
def test_an_exit_status_is_read_and_what_is_none_is_none(
    spool: Spool, text: str, status: Exit | None
) -> None:
    (spool.folder / "exit").write_text(text)
    assert spool.exit() == status


@pytest.mark.parametrize("text", ["", "x", "1", "-1 2 boot", "1 x boot"])
def test_a_shim_that_can_not_be_read_is_none(spool: Spool, text: str) -> None:
    (spool.folder / "shim").write_text(text)
    (spool.folder / "cli").write_text("1 2")
    assert spool.shim() is None
    assert spool.cli() is None


# --- giving back


def test_a_hole_frees_the_disk_and_moves_nothing(spool: Spool) -> None:
    data = os.urandom(64 * PAGE)
    spool.append(data)
    path = spool.folder / "inbox"
    before = path.stat().st_blocks
    freed = spool.punch("inbox", 40 * PAGE + 100)
    assert freed == 40 * PAGE
    assert path.stat().st_blocks == before - freed // 512
    assert spool.inbox_size() == len(data)
    assert spool.read_inbox(0, 40 * PAGE) == bytes(40 * PAGE)
    assert spool.read_inbox(40 * PAGE, len(data)) == data[40 * PAGE :]
    spool.append(b"more")
    assert spool.read_inbox(len(data), 10) == b"more"
    assert spool.punch("inbox", 40 * PAGE) == 0
    assert spool.punch("inbox", PAGE - 1) == 0


def test_it_is_removed_with_all_that_is_in_it(spool: Spool) -> None:
    spool.abandon()
    spool.remove()
    assert not spool.folder.exists()


def test_nothing_of_it_stays_open(spool: Spool) -> None:
    before = open_files()
    for _ in range(10):
        spool.append(b"x" * 10_000)
        spool.ring()
        spool.read_inbox(0, 10)
        spool.punch("inbox", 1 << 20)
        spool.is_held()
        spool.exit()
    spool.abandon()
    spool.remove()
    assert open_files() == before
