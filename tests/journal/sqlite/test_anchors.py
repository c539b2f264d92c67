"""What the anchors show: ends and beginnings that were cut, streams that are gone, older copies."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from bridle.errors import InvalidAnchors, JournalUnwritable
from bridle.journal import (
    Audit,
    Durability,
    NewEvent,
    Verdict,
    archive,
    verify,
    verify_all,
)
from bridle.journal.sqlite import anchoring
from bridle.journal.sqlite.schema import SEQ_BITS
from bridle.journal.sqlite.store import SqliteJournal, open_journal
from tests.levels import tries

from .files import flip, one, raw
from .tampering import (
    anchor_file,
    copy_database,
    cut_head,
    cut_tail,
    digest,
    id_of,
    lines_of,
    put_back,
    remove_stream,
    seal_anew,
    swap,
    write_chain,
)

SEALED = [NewEvent("k", b"%d" % number, is_sealed=True) for number in range(1, 11)]
PLAIN = [NewEvent("k", b"%d" % number) for number in range(1, 11)]
DAMAGE: dict[str, tuple[Callable[[Path], None], str, int, str]] = {
    "the end of a stream is cut, and its seal set back": (
        lambda home: cut_tail(home, "sealed", 7), "sealed", 8, "events 8 to 10 are missing"),
    "one event is cut": (
        lambda home: cut_tail(home, "sealed", 9), "sealed", 10, "event 10 is missing"),
    "all events are cut": (
        lambda home: cut_tail(home, "sealed", 0), "sealed", 1, "events 1 to 10 are missing"),
    "the end of a stream without seals is cut": (
        lambda home: cut_tail(home, "plain", 7), "plain", 8, "events 8 to 10 are missing"),
    "the beginning is cut": (
        lambda home: cut_head(home, "sealed", 3), "sealed", 1, "events 1 to 3 are gone, and there"),
    "the beginning is cut, with a tombstone that is forged": (
        lambda home: cut_head(home, "sealed", 3, is_forged=True), "sealed", 1,
        "events 1 to 3 are gone, and no deletion of them is anchored"),
    "the beginning of a stream without seals is cut": (
        lambda home: cut_head(home, "plain", 3, is_forged=True), "plain", 1,
        "events 1 to 3 are gone"),
    "all of a stream is deleted, with a tombstone that is forged": (
        lambda home: cut_head(home, "sealed", 10, is_forged=True), "sealed", 1,
        "events 1 to 10 are gone, and no deletion"),
    "a stream is removed": (
        lambda home: remove_stream(home, "sealed"), "sealed", 1, "events 1 to 10 are missing"),
    "a stream without seals is removed": (
        lambda home: remove_stream(home, "plain"), "plain", 1, "events 1 to 10 are missing"),
    "a tombstone is removed with its stream": (
        lambda home: remove_stream(home, "deleted"), "deleted", 1, "events 1 to 10 are missing"),
    "an event is changed, and all are sealed anew": (
        lambda home: seal_anew(home, "sealed", 3, b"other"), "sealed", 10,
        "the sealed events up to here are not those that were anchored"),
    "a deletion goes further": (
        lambda home: cut_head(home, "goes on", 12), "goes on", 10,
        "the tombstone of the events up to"),
    "a deletion goes further, with a tombstone that is forged": (
        lambda home: cut_head(home, "goes on", 12, is_forged=True), "goes on", 11,
        "events 11 to 12 are gone, and no deletion"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _local_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")


async def fill(home: Path) -> None:
    """A closed journal with a stream of each kind."""
    async with open_journal(home) as journal:
        for name in ("sealed", "other", "deleted", "goes on"):
            await journal.log.append(name, SEALED, 0, Durability.POWER)
        await journal.log.append("plain", PLAIN, 0)
        await journal.log.delete("deleted", 10)
        await journal.log.delete("goes on", 10)
        await journal.log.append("goes on", SEALED, 10)


async def audit(home: Path, copy: bytes | None = None) -> Audit:
    async with open_journal(home) as journal:
        return await verify_all(journal, copy)


async def audit_twice(home: Path, copy: bytes | None = None) -> Audit:
    """It is still found when the journal was closed and opened again."""
    await audit(home, copy)
    return await audit(home, copy)


def broken(found: Audit) -> dict[str, int | None]:
    return {one.stream: one.broken_at for one in found.verdicts if not one.is_intact}


async def accept_all(home: Path) -> dict[str, str]:
    async with open_journal(home) as journal:
        return await journal.anchors.accept("ann")


# --- what nobody has touched


async def test_what_nobody_has_touched_is_intact(home: Path) -> None:
    await fill(home)
    found = await audit_twice(home)
    assert found.is_intact
    assert found.is_anchored
    assert [verdict.stream for verdict in found.verdicts] == ["goes on", "other", "plain", "sealed"]
    assert await accept_all(home) == {}


async def test_the_file_is_for_us_alone_and_is_not_written_when_nothing_changes(home: Path) -> None:
    await fill(home)
    await audit(home)
    assert stat.S_IMODE(anchor_file(home).stat().st_mode) == 0o600
    before, row = digest(anchor_file(home)), one(home, "SELECT number FROM anchor")
    assert row == lines_of(home)[-1].number
    await audit_twice(home)
    assert digest(anchor_file(home)) == before


async def test_a_stream_that_is_deleted_and_used_again_is_intact(home: Path) -> None:
    await fill(home)
    async with open_journal(home) as journal:
        await journal.log.append("deleted", SEALED, 10)
        await journal.log.delete("deleted", 20, "too old")
        await journal.log.append("deleted", PLAIN, 20)
        assert await verify(journal, "deleted") == Verdict("deleted", 0)
        left = (await journal.anchors.of("deleted")).tombstone
        assert left
        assert (left.upto, left.why) == (20, "too old")
        assert left.previous
    assert (await audit_twice(home)).is_intact


async def test_an_archive_leaves_a_tombstone_that_names_it(home: Path, tmp_path: Path) -> None:
    await fill(home)
    file = tmp_path / "sealed.gz"
    async with open_journal(home) as journal:
        assert (await archive(journal, "sealed", file)).is_intact
        left = (await journal.anchors.of("sealed")).tombstone
        assert left
        assert left.why == f"archived: sealed.gz, SHA-256 {digest(file)}"
        assert (await verify_all(journal)).is_intact
    assert (await audit_twice(home)).is_intact


async def test_a_stream_that_was_cut_is_not_archived_away(home: Path, tmp_path: Path) -> None:
    await fill(home)
    cut_tail(home, "sealed", 7)
    async with open_journal(home) as journal:
        verdict = await archive(journal, "sealed", tmp_path / "sealed.gz")
        assert verdict.broken_at == 8
        assert (await journal.log.info("sealed")).last_seq == 7
        assert len(await journal.log.read("sealed")) == 7


# --- what is found


@pytest.mark.parametrize("name", DAMAGE)
async def test_damage_is_found_and_named_and_stays_found(home: Path, name: str) -> None:
    damage, stream, at, reason = DAMAGE[name]
    await fill(home)
    damage(home)
    for _ in range(2):
        found = await audit(home)
        assert not found.is_intact
        assert broken(found) == {stream: at}
        (verdict,) = [one for one in found.verdicts if one.stream == stream]
        assert verdict.reason.startswith(reason)
        assert "bridle audit accept" in verdict.remedy


@pytest.mark.parametrize("name", DAMAGE)
async def test_damage_is_found_while_the_journal_is_open(home: Path, name: str) -> None:
    damage, stream, at, _ = DAMAGE[name]
    await fill(home)
    async with open_journal(home) as journal:
        assert (await verify_all(journal)).is_intact
        damage(home)
        assert broken(await verify_all(journal)) == {stream: at}


async def test_streams_that_were_swapped_are_found(home: Path) -> None:
    await fill(home)
    swap(home, "sealed", "plain")
    assert broken(await audit_twice(home)).keys() == {"sealed", "plain"}


async def test_a_cut_is_still_told_when_the_stream_has_gone_on(home: Path) -> None:
    await fill(home)
    for name in ("sealed", "plain"):
        cut_tail(home, name, 7)
    async with open_journal(home) as journal:
        await journal.log.append("sealed", SEALED, 7)
        await journal.log.append("plain", PLAIN, 7)
    found = await audit_twice(home)
    assert broken(found) == {"sealed": 8, "plain": 8}
    # And what is cut from then on, when that was accepted.
    assert set(await accept_all(home)) == {"sealed", "plain"}
    assert (await audit_twice(home)).is_intact
    cut_tail(home, "plain", 16)
    assert broken(await audit_twice(home)) == {"plain": 17}


async def test_of_several_faults_the_first_is_told(home: Path) -> None:
    await fill(home)
    cut_tail(home, "sealed", 7)
    async with open_journal(home) as journal:
        await journal.log.append("sealed", SEALED, 7)
    for seq, at in ((12, 8), (3, 3)):
        with raw(home) as database:
            key = id_of(database, "sealed") << SEQ_BITS | seq
            database.execute("UPDATE event SET body = 'other' WHERE key = ?", (key,))
        assert broken(await audit_twice(home)) == {"sealed": at}


async def test_a_cut_is_still_told_when_the_stream_was_deleted_after_it(home: Path) -> None:
    await fill(home)
    cut_tail(home, "sealed", 7)
    async with open_journal(home) as journal:
        await journal.log.delete("sealed", 7)
    assert broken(await audit_twice(home)) == {"sealed": 8}


async def test_a_name_that_is_used_again_after_its_stream_was_removed_is_found(home: Path) -> None:
    await fill(home)
    for name in ("sealed", "deleted", "plain"):
        remove_stream(home, name)
    async with open_journal(home) as journal:
        for name in ("sealed", "deleted", "plain"):
            await journal.log.append(name, SEALED + SEALED, 0)
    assert broken(await audit_twice(home)) == {"sealed": 1, "deleted": 1, "plain": 1}


@pytest.mark.parametrize(
    ("change", "at"),
    [
        ("SET tombstone = replace(tombstone, '\"deleted\"', '\"expired\"')", 10),
        ("SET tombstone = NULL", 1),
        ("SET tombstone = 'x'", 1),
        ("SET tombstone = 5", 1),
        ("SET tombstone = x'7b22756e223a22efef227d'", 1),
        ("SET tombstone = (SELECT tombstone FROM stream WHERE name = 'goes on')", 10),
        ("SET floor = 9, tombstone = replace(tombstone, '10', '9')", 9),
        ("SET floor = 11", 10),
        ("SET floor_seal = zeroblob(32)", 10),
    ],
)
async def test_a_tombstone_that_was_changed_is_found(home: Path, change: str, at: int) -> None:
    await fill(home)
    with raw(home) as journal:
        journal.execute(f"UPDATE stream {change} WHERE name = 'deleted'")
    assert broken(await audit_twice(home)) == {"deleted": at}


@pytest.mark.parametrize(
    ("change", "at"),
    [
        ("SET seal = 'x'", 10),
        ("SET seal = 5", 10),
        ("SET floor = -5", 1),
        ("SET name = x'ff'", 1),
        ("SET floor_seal = 'x'", 1),
    ],
)
async def test_a_head_that_can_be_none_is_told_of_its_stream(
    home: Path, change: str, at: int
) -> None:
    await fill(home)
    with raw(home) as journal:
        journal.execute(f"UPDATE stream {change} WHERE name = 'sealed'")
    found = await audit_twice(home)
    assert broken(found) == {"sealed": at}
    assert found.fault is None


async def test_a_tombstone_of_an_unused_stream_is_found(home: Path) -> None:
    await fill(home)
    with raw(home) as journal:
        journal.execute(
            "UPDATE stream SET tombstone = (SELECT tombstone FROM stream WHERE name = 'deleted')"
            " WHERE name = 'plain'"
        )
    assert broken(await audit_twice(home)) == {"plain": 1}


# --- the file itself, and what the journal knows of it


def remove_lines(home: Path) -> None:
    lines = anchor_file(home).read_bytes().splitlines(keepends=True)
    anchor_file(home).write_bytes(b"".join(line for line in lines if b'"other"' not in line))


def cut_lines(home: Path) -> None:
    lines = anchor_file(home).read_bytes().splitlines(keepends=True)
    anchor_file(home).write_bytes(b"".join(lines[:-1]))


def edit_line(home: Path) -> None:
    data = anchor_file(home).read_bytes()
    anchor_file(home).write_bytes(data.replace(b'"last":10', b'"last":17', 1))


def chain_anew(home: Path) -> None:
    """Without the lines of one stream, and with hashes that fit; the database is not changed."""
    row = one(home, "SELECT number FROM anchor")
    with raw(home) as journal:
        (hash_,) = journal.execute("SELECT hash FROM anchor").fetchone()
    write_chain(home, [line for line in lines_of(home) if line.stream != "other"])
    with raw(home) as journal:
        journal.execute("UPDATE anchor SET number = ?, hash = ?", (row, hash_))


def run(statement: str) -> Callable[[Path], None]:
    def change(home: Path) -> None:
        with raw(home) as journal:
            journal.execute(statement)

    return change


def tear(home: Path) -> None:
    os.truncate(anchor_file(home), anchor_file(home).stat().st_size - 5)


def fill_with_zeros(home: Path) -> None:
    anchor_file(home).write_bytes(bytes(5000))


FILES: dict[str, Callable[[Path], None]] = {
    "it is removed": lambda home: anchor_file(home).unlink(),
    "it is emptied": lambda home: os.truncate(anchor_file(home), 0),
    "lines are cut from its end": cut_lines,
    "its last line is torn": tear,
    "lines in it are removed": remove_lines,
    "a line is edited": edit_line,
    "it is chained anew without some of its lines": chain_anew,
    "it is something else": fill_with_zeros,
    "the journal's record of it is removed": run("DELETE FROM anchor"),
    "the journal's record of it is another": run("UPDATE anchor SET hash = zeroblob(32)"),
    "the journal's record of it is none": run("UPDATE anchor SET number = 'x'"),
    "there are two records of it": run("INSERT INTO anchor SELECT * FROM anchor"),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
async def test_a_change_of_the_file_is_found_and_stays_found_until_it_is_accepted(
    home: Path, name: str
) -> None:
    await fill(home)
    FILES[name](home)
    for _ in range(3):
        found = await audit(home)
        assert found.fault
        assert found.fault.reason.startswith("the file of anchors is not what it was: ")
        assert not found.is_intact
        assert broken(found) == {}
    assert set(await accept_all(home)) == {""}
    assert (await audit_twice(home)).is_intact
    # It is as good as new.
    cut_tail(home, "sealed", 7)
    assert broken(await audit_twice(home)) == {"sealed": 8}


@pytest.mark.deeper
async def test_any_byte_of_the_file_that_is_changed_is_found(home: Path) -> None:
    await fill(home)
    data = anchor_file(home).read_bytes()
    again = home.with_name("again")
    luck = random.Random(5)
    for _ in range(tries(10, 500, 10_000)):
        shutil.copytree(home, again, ignore=shutil.ignore_patterns("journal.ballast"))
        offset = luck.randrange(len(data))
        if luck.randrange(4):
            flip(anchor_file(again), offset, 1 << luck.randrange(8))
        else:
            os.truncate(anchor_file(again), offset)
        assert (await audit(again)).fault, f"at {offset}"
        shutil.rmtree(again)


@pytest.mark.parametrize("name", [name for name in FILES if "record" not in name])
async def test_a_change_of_the_file_is_found_while_the_journal_is_open(
    home: Path, name: str
) -> None:
    await fill(home)
    async with open_journal(home) as journal:
        assert (await verify_all(journal)).is_intact
        FILES[name](home)
        assert not (await verify_all(journal)).is_intact
    assert not (await audit(home)).is_intact


async def test_a_pipe_in_its_place_holds_up_nobody(home: Path) -> None:
    await fill(home)
    anchor_file(home).unlink()
    os.mkfifo(anchor_file(home))
    async with asyncio.timeout(60):
        found = await audit_twice(home)
    assert found.fault
    assert "it is no file" in found.fault.reason
    assert anchor_file(home).is_file()


async def test_what_is_accepted_while_it_is_open_counts_for_the_writer_as_well(home: Path) -> None:
    await fill(home)
    async with open_journal(home) as journal:
        await journal.log.append("sealed", SEALED, 10, Durability.POWER)
        cut_tail(home, "sealed", 7)
        assert set(await journal.anchors.accept("ann")) == {"sealed"}
        await journal.log.append("sealed", SEALED, 7, Durability.POWER)
        assert (await verify_all(journal)).is_intact
    assert (await audit_twice(home)).is_intact


async def test_the_file_that_is_not_what_it_was_is_kept(home: Path) -> None:
    await fill(home)
    edit_line(home)
    before = anchor_file(home).read_bytes()
    await audit_twice(home)
    assert anchor_file(home).with_name("journal.anchors.bad").read_bytes() == before


async def test_to_drop_a_stream_and_its_lines_is_found(home: Path) -> None:
    await fill(home)
    remove_stream(home, "other")
    chain_anew(home)
    assert (await audit_twice(home)).fault


# --- crashes, power loss, full disks


async def test_a_last_line_that_a_crash_has_torn_is_left_out(home: Path) -> None:
    await fill(home)
    for rest in (b'{"number":', b'{"number":99}\n', b"\x00" * 3000, b"\x00" * 99 + b"\n{}\n"):
        with anchor_file(home).open("ab") as file:
            file.write(rest)
        assert (await audit_twice(home)).is_intact
        assert lines_of(home)


@pytest.mark.parametrize("is_announced", [True, False])
async def test_a_deletion_whose_anchor_a_power_loss_took_is_known_by_its_announcement(
    home: Path, is_announced: bool
) -> None:
    await fill(home)
    before, data = lines_of(home), anchor_file(home).read_bytes()
    async with open_journal(home) as journal:
        await journal.log.append("sealed", SEALED, 10)
        await journal.log.delete("plain", 10)
    announced = anchor_file(home).read_bytes()[len(data) :].splitlines(keepends=True)[0]
    assert b'"deleting","stream":"plain"' in announced
    anchor_file(home).write_bytes(data + (announced if is_announced else b""))
    with raw(home) as database:  # which never leads the file
        facts = (before[-1].number, before[-1].hash)
        database.execute("UPDATE anchor SET number = ?, hash = ?", facts)
    assert broken(await audit_twice(home)) == ({} if is_announced else {"plain": 1})


async def test_a_deletion_that_was_announced_and_did_not_happen_is_no_fault(home: Path) -> None:
    await fill(home)
    async with open_journal(home) as journal:
        with raw(home) as other:
            fails = "BEGIN SELECT raise(FAIL, 'no'); END"
            other.execute(f"CREATE TRIGGER no BEFORE UPDATE ON stream {fails}")
            with pytest.raises(Exception, match="no"):
                await journal.log.delete("sealed", 10)
            other.execute("DROP TRIGGER no")
        assert (await verify_all(journal)).is_intact
    assert (await audit_twice(home)).is_intact
    assert [line.kind for line in lines_of(home) if line.stream == "sealed"][-2:] == [
        "deleting", "anchor",
    ]  # fmt: skip
    # What was announced then does not cover what is done later.
    cut_head(home, "sealed", 10, is_forged=True)
    assert broken(await audit_twice(home)) == {"sealed": 1}


async def test_a_deletion_that_a_crash_kept_from_happening_is_announced_no_more(
    home: Path, tmp_path: Path
) -> None:
    await fill(home)
    copy_database(home, tmp_path / "before")
    data = anchor_file(home).read_bytes()
    async with open_journal(home) as journal:
        await journal.log.delete("sealed", 10)
    announced = anchor_file(home).read_bytes()[len(data) :].splitlines(keepends=True)[0]
    assert b'"deleting","stream":"sealed"' in announced
    put_back(home, tmp_path / "before")
    anchor_file(home).write_bytes(data + announced)
    assert (await audit_twice(home)).is_intact
    assert [line.kind for line in lines_of(home) if line.stream == "sealed"][-2:] == [
        "deleting", "anchor",
    ]  # fmt: skip


async def test_what_a_power_loss_rolls_back_was_never_anchored(home: Path, tmp_path: Path) -> None:
    """Only what the disk has is anchored: here the log goes back to where it was synced last."""
    await fill(home)
    async with open_journal(home) as journal:
        await journal.log.append("sealed", SEALED, 10, Durability.POWER)
        copy_database(home, tmp_path / "on disk")
        for start in range(20, 120, 10):
            await journal.log.append("sealed", SEALED, start)
            await journal.log.append("plain", PLAIN, start - 10)
        lines = anchor_file(home).read_bytes()  # all of it may have reached the disk
    put_back(home, tmp_path / "on disk")
    anchor_file(home).write_bytes(lines)
    assert (await audit_twice(home)).is_intact


async def test_a_file_that_cannot_be_written_holds_up_nobody_and_is_told(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(anchoring, "RETRY_SECONDS", 0.01)
    await fill(home)
    anchor_file(home).unlink()
    anchor_file(home).mkdir()
    async with open_journal(home) as journal:
        await journal.log.append("sealed", SEALED, 10, Durability.POWER)
        await journal.log.delete("other", 10)
        found = await verify_all(journal)
        assert found.fault
        assert "can't be" in found.fault.reason
        with pytest.raises(JournalUnwritable, match="can't be accepted"):
            await journal.anchors.accept("ann")
    anchor_file(home).rmdir()
    assert (await audit(home)).fault
    assert set(await accept_all(home)) == {""}
    assert (await audit_twice(home)).is_intact


WRITES = """
import asyncio, sys
from bridle.journal import Durability, NewEvent, open_journal

async def write():
    async with open_journal(sys.argv[1]) as journal:
        events = [NewEvent("k", b"x", is_sealed=True)] * 3
        for last in range(0, 3000, 3):
            seq = await journal.log.append("s", events, last, Durability.POWER)
            print(seq, flush=True)

asyncio.run(write())
"""


@pytest.mark.parametrize("acknowledged", [1, 7])
async def test_what_kill_9_leaves_is_intact_and_no_cut_hides_in_it(
    home: Path, acknowledged: int
) -> None:
    writer = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WRITES, str(home), stdout=asyncio.subprocess.PIPE
    )
    assert writer.stdout
    last = 0
    async with asyncio.timeout(60):
        for _ in range(acknowledged):
            last = int(await writer.stdout.readline())
        writer.kill()
        await writer.wait()
    shutil.copytree(home, home.with_name("again"))
    assert (await audit_twice(home.with_name("again"))).is_intact
    # Nobody has opened it since: what was acknowledged is anchored all the same.
    cut_tail(home, "s", last - 1)
    assert broken(await audit_twice(home)) == {"s": last}


ORDER = """
import asyncio, sys
from bridle.journal import Durability, NewEvent, open_journal

async def write():
    async with open_journal(sys.argv[1]) as journal:
        for last in range(40):
            event = NewEvent("k", b"x", is_sealed=last % 3 == 0)
            await journal.log.append("s", [event], last, list(Durability)[last % 2])
            if last % 10 == 9:
                await journal.anchor()
        await journal.log.delete("s", 40)
        await journal.log.append("s", [event], 40)

asyncio.run(write())
"""


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
async def test_an_anchor_is_written_only_of_what_is_on_the_disk(home: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    calls = "trace=pwrite64,write,fsync,fdatasync,ftruncate"
    traced = ["strace", "-f", "-y", "-s", "4096", "-e", calls, "-o", str(trace)]
    program = await asyncio.create_subprocess_exec(
        *traced, sys.executable, "-c", ORDER, str(home), stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(60):
        assert not await program.wait(), (await program.communicate())[1]
    is_log_synced = is_intent_synced = True
    anchored = announced = 0
    for call in trace.read_text().splitlines():
        is_log, is_file = "/journal.db-wal>" in call, "/journal.anchors>" in call
        if "sync(" in call:
            is_log_synced, is_intent_synced = is_log_synced or is_log, is_intent_synced or is_file
        elif is_file and "deleting" in call:
            announced += 1
            is_intent_synced = False
        elif is_file and "write" in call:
            assert is_log_synced, call
            anchored += 1
        elif is_log and "write" in call:
            assert is_intent_synced, "it is deleted before the disk has that it will be"
            is_log_synced = False
    assert announced == 1
    assert anchored > 10


async def test_a_cut_that_cannot_be_written_down_is_not_anchored_either(home: Path) -> None:
    await fill(home)
    for name in ("sealed", "plain"):
        cut_tail(home, name, 7)
    away = home / "away"
    anchor_file(home).rename(away)
    anchor_file(home).symlink_to(away)  # it can be read, and is not written to
    async with open_journal(home) as journal:
        await journal.log.append("sealed", SEALED, 7, Durability.POWER)
        assert broken(await verify_all(journal)).keys() == {"sealed", "plain"}
        away.rename(anchor_file(home))
        await journal.log.append("sealed", SEALED, 17, Durability.POWER)
        await journal.log.append("plain", PLAIN, 7)
        await journal.anchor()
    assert broken(await audit_twice(home)) == {"sealed": 8, "plain": 8}


# --- older copies


async def test_an_older_copy_of_the_database_is_found_and_can_be_accepted(
    home: Path, tmp_path: Path
) -> None:
    await fill(home)
    copy_database(home, tmp_path / "backup")
    async with open_journal(home) as journal:
        await journal.log.append("sealed", SEALED, 10)
        await journal.log.append("new", SEALED, 0)
        await journal.log.delete("other", 10)
    put_back(home, tmp_path / "backup")
    found = await audit_twice(home)
    assert broken(found) == {"sealed": 11, "new": 1, "other": 1}
    (verdict,) = [one for one in found.verdicts if one.stream == "other"]
    assert verdict.reason == "its events up to 10 were deleted, and some of them are there again"
    async with open_journal(home) as journal:
        assert set(await journal.anchors.accept("ann", "new")) == {"new"}
        assert broken(await verify_all(journal)) == {"sealed": 11, "other": 1}
        assert set(await journal.anchors.accept("ann")) == {"sealed", "other"}
        assert (await verify_all(journal)).is_intact
    assert (await audit_twice(home)).is_intact
    assert [line.by for line in lines_of(home) if line.kind == "accepted"] == ["ann"] * 3


async def test_a_home_without_anchors_is_anchored_from_then_on(home: Path) -> None:
    """As Bridle left it before there were any."""
    await fill(home)
    anchor_file(home).unlink()
    with raw(home) as journal:
        journal.execute("DROP TABLE anchor")
        journal.execute("ALTER TABLE stream DROP COLUMN tombstone")
        journal.execute("PRAGMA user_version = 1")
    assert (await audit_twice(home)).is_intact
    async with open_journal(home) as opened:
        left = (await opened.anchors.of("deleted")).tombstone
        assert left
        assert (left.upto, left.why) == (10, "deleted before there were tombstones")
    cut_tail(home, "sealed", 7)
    assert broken(await audit_twice(home)) == {"sealed": 8}


# --- what the home alone can't show, and a copy does


async def test_who_writes_the_whole_home_can_forge_all_of_it_but_not_a_copy(home: Path) -> None:
    await fill(home)
    copy = anchor_file(home).read_bytes()
    assert (await audit(home, copy)).is_intact
    remove_stream(home, "other")
    write_chain(home, [line for line in lines_of(home) if line.stream != "other"])
    assert (await audit_twice(home)).is_intact  # nothing is left to see it by
    found = await audit_twice(home, copy)
    assert found.fault
    assert broken(found) == {"other": 1}


async def test_a_home_that_was_rolled_back_whole_is_shown_by_a_copy(
    home: Path, tmp_path: Path
) -> None:
    await fill(home)
    shutil.copytree(home, tmp_path / "backup")
    async with open_journal(home) as journal:
        await journal.log.append("sealed", SEALED, 10)
    copy = anchor_file(home).read_bytes()
    shutil.rmtree(home)
    shutil.copytree(tmp_path / "backup", home)
    assert (await audit_twice(home)).is_intact
    found = await audit_twice(home, copy)
    assert found.fault
    assert "the home is older than the copy" in found.fault.reason
    assert broken(found) == {"sealed": 11}


async def test_a_copy_with_gaps_that_is_older_fits(home: Path) -> None:
    await fill(home)
    copy = b"".join(anchor_file(home).read_bytes().splitlines(keepends=True)[2::3])
    async with open_journal(home) as journal:
        await journal.log.append("sealed", SEALED, 10)
        await journal.log.delete("other", 10)
    assert (await audit_twice(home, copy)).is_intact


@pytest.mark.parametrize("copy", [b"", b"\n", b"what?\n", b"[]", b'{"number":1,"by":"\xef\xef"}'])
async def test_what_is_no_copy_is_refused(home: Path, copy: bytes) -> None:
    await fill(home)
    with pytest.raises(InvalidAnchors, match="the copy of the anchors"):
        await audit(home, copy)


async def test_what_is_said_not_to_be_found_is_not(home: Path) -> None:
    """docs/security.md says so: whoever changes that changes the page."""
    await fill(home)
    with raw(home) as journal:
        key = id_of(journal, "plain") << SEQ_BITS | 3
        journal.execute("UPDATE event SET body = 'other' WHERE key = ?", (key,))
    assert (await audit_twice(home)).is_intact
    shutil.copytree(home, home.with_name("ahead"))
    async with open_journal(home.with_name("ahead")) as other:
        await other.log.append("sealed", SEALED, 10)
    shutil.copy(home.with_name("ahead") / "journal.db", home)
    with raw(home) as journal:
        last = lines_of(home)[-1]
        journal.execute("UPDATE anchor SET number = ?, hash = ?", (last.number, last.hash))
    assert (await audit_twice(home)).is_intact


# --- bounds


async def test_the_file_is_written_anew_when_it_has_grown_and_says_the_same(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(anchoring, "LARGE", 20_000)
    await fill(home)
    cut_tail(home, "plain", 7)
    copy, size = b"", 0
    for start in range(10, 210, 10):
        async with open_journal(home) as journal:
            for number in range(10):
                last = start + number
                await journal.log.append("sealed", SEALED[:1], last, Durability.POWER)
        size = max(size, anchor_file(home).stat().st_size)
        copy = copy if start > 100 else anchor_file(home).read_bytes()
    lines = lines_of(home)
    assert lines[0].number > 100
    assert size < 30_000
    assert broken(await audit_twice(home)) == {"plain": 8}
    found = await audit(home, copy)
    assert found.fault
    assert "what was between can't be shown" in found.fault.reason
    cut_tail(home, "sealed", 100)
    assert broken(await audit_twice(home)) == {"plain": 8, "sealed": 101}


async def test_a_batch_of_many_events_is_one_line(home: Path) -> None:
    async with open_journal(home) as journal:
        await journal.log.append("s", SEALED * 100, 0, Durability.POWER)
        written = [line for line in lines_of(home) if line.stream == "s"]
        assert [line.head.last for line in written if line.head] == [1000]


async def test_what_is_sealed_for_good_is_anchored_when_it_is_acknowledged(home: Path) -> None:
    async with open_journal(home) as journal:
        for last in range(5):
            await journal.log.append("s", SEALED[:1], last, Durability.POWER)
            anchor = (await journal.anchors.of("s")).anchor
            assert anchor
            assert anchor.head.last == last + 1
            assert lines_of(home)[-1].head == anchor.head


async def test_what_is_not_waited_for_is_anchored_soon(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(anchoring, "SECONDS", 0.05)
    async with open_journal(home) as journal:
        await journal.log.append("s", PLAIN, 0)
        started = time.monotonic()
        while not (await journal.anchors.of("s")).anchor:  # each time another thread gets a turn
            assert time.monotonic() < started + 60


async def test_all_can_be_anchored_at_once(home: Path) -> None:
    async with open_journal(home) as journal:
        await journal.log.append("s", PLAIN, 0)
        await journal.anchor()
        assert lines_of(home)[-1].stream == "s"
        assert one(home, "SELECT number FROM anchor") == lines_of(home)[-1].number


async def test_a_line_carries_what_the_stream_is(home: Path) -> None:
    await fill(home)
    async with open_journal(home) as journal:
        assert isinstance(journal, SqliteJournal)
        kept = await journal.anchors.of("deleted")
        assert kept.tombstone
        assert kept.anchor
        assert kept.anchor.head.tombstone == kept.tombstone.hash
        assert replace(kept.anchor.head, tombstone=b"").first == 11
