"""A stream as a file of its own: JSON lines, compressed, with large payloads inside.

The first line says what it is, then comes a line for each event, and the last line says how many
there were, so that a file that was cut is noticed.
"""

from __future__ import annotations

import asyncio
import gzip
import os
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from hashlib import file_digest, sha256
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec import Struct

from ..errors import InvalidArchive, InvalidEntry, WrongSequence
from ..ids import new_token
from .audit import Verdict, Verifier, verify
from .contract import Journal
from .events import HEAD_SIZE, BlobRef, Event, Seal, StreamInfo
from .files import sync, sync_folder

FORMAT = "bridle-archive-1"
PAGE = 100
MAX_PAGE_BYTES = 8 * 1024 * 1024


class _First(Struct):
    format: str
    info: StreamInfo


class _Line(Struct, omit_defaults=True):
    """An event with its whole payload; msgspec writes bytes as base64."""

    seq: int
    at: float
    kind: str
    payload: bytes
    blob: BlobRef | None = None
    seal: Seal | None = None


class _Last(Struct):
    events: int


_FIRST = msgspec.json.Decoder(_First)
_LINE = msgspec.json.Decoder(_Line)
_LAST = msgspec.json.Decoder(_Last)


async def archive(journal: Journal, stream: str, file: Path | str) -> Verdict:
    """Write the whole stream to a new file, and delete it from the journal when that is on disk.

    The file is read back before anything is deleted. The verdict is that on the audit chain in it:
    where that is broken, the stream is kept as well. If somebody appends meanwhile, WrongSequence,
    and the stream is kept and the file is not.
    """
    file = Path(file)
    info = await journal.log.info(stream)
    if info.last_seq < info.first_seq:
        raise InvalidEntry(f"stream {stream!r} has no events to archive")
    await _write(journal, info, file)
    verdict = await asyncio.to_thread(verify_archive, file)
    if verdict.is_intact:
        verdict = await verify(journal, stream)  # a tombstone must not cover what is missing
    try:
        if verdict.is_intact:
            why = f"archived: {file.name}, SHA-256 {await asyncio.to_thread(_digest, file)}"
            await journal.log.delete(stream, info.last_seq, why)
    except WrongSequence:
        _discard(file)  # it is not all of the stream, and to try again needs the name
        raise
    return verdict


def read_archive(file: Path | str) -> Iterator[tuple[Event, bytes]]:
    """The events as they were in the log, each with its whole payload. InvalidArchive if the file
    was cut, changed or is none."""
    for line in _lines(file):
        if isinstance(line, _Line):
            yield _event(line), line.payload


def verify_archive(file: Path | str) -> Verdict:
    """Whether the audit chain in the file is whole, and every large payload what it was."""
    verifier: Verifier | None = None
    for line in _lines(file):
        if isinstance(line, StreamInfo):
            verifier = Verifier(line)
        elif verifier:
            if line.blob and sha256(line.payload).hexdigest() != line.blob.digest:
                raise InvalidArchive(f"{file}: the payload of event {line.seq} was changed")
            verifier.see(_event(line))
    assert verifier
    return verifier.verdict()


async def _write(journal: Journal, info: StreamInfo, file: Path) -> None:
    half = file.with_name(f".{file.name}.{new_token(4)}.part")
    try:
        with _new(file, half) as raw, gzip.open(raw, "wb") as out:
            out.write(_encoded(_First(FORMAT, info)))
            count = 0
            async for lines in _pages(journal, info):
                count += len(lines)
                # All of the work in the thread: a payload of 60 MB takes its time.
                await asyncio.to_thread(_write_lines, out, lines)
            await asyncio.to_thread(_finish, out, raw, count)
        _name(half, file)
    except FileExistsError:
        raise InvalidArchive(f"{file} exists already: choose another name") from None
    except OSError as error:
        raise InvalidArchive(f"{file} can't be written: {error.strerror}") from error
    finally:
        _discard(half)


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return file_digest(opened, "sha256").hexdigest()


def _write_lines(out: gzip.GzipFile, lines: list[_Line]) -> None:
    out.writelines(map(_encoded, lines))


def _finish(out: gzip.GzipFile, raw: BinaryIO, count: int) -> None:
    out.write(_encoded(_Last(count)))
    out.close()
    sync(raw.fileno())


def _new(file: Path, half: Path) -> BinaryIO:
    if file.exists():
        raise FileExistsError
    return os.fdopen(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _name(half: Path, file: Path) -> None:
    """Give it its name, whole, and only if nobody else has taken that meanwhile."""
    try:
        os.link(half, file)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        half.replace(file)
    sync_folder(file.parent)


def _discard(file: Path) -> None:
    with suppress(OSError):
        file.unlink()


async def _pages(journal: Journal, info: StreamInfo) -> AsyncIterator[list[_Line]]:
    after = info.first_seq - 1
    while after < info.last_seq:
        limit = min(PAGE, info.last_seq - after)
        events = await journal.log.read(info.name, after, limit)
        if not events:
            raise InvalidArchive(f"stream {info.name!r} ends at {after}, not at {info.last_seq}")
        after = events[-1].seq
        lines, size = [], 0
        for event in events:
            payload = await journal.payload(event)
            lines.append(_line(event, payload))
            size += len(payload)
            if size > MAX_PAGE_BYTES:
                yield lines
                lines, size = [], 0
        yield lines


def _lines(file: Path | str) -> Iterator[StreamInfo | _Line]:
    try:
        with gzip.open(file) as lines:
            first = _FIRST.decode(next(lines, b""))
            if first.format != FORMAT:
                raise InvalidArchive(f"{file} has another format: {first.format}")
            yield first.info
            for count, line in enumerate(lines):
                if line.startswith(b'{"events":'):
                    # The checksum of all is behind the last line: read on to the very end.
                    if _LAST.decode(line).events != count or next(lines, None) is not None:
                        break
                    return
                yield _LINE.decode(line)
    except FileNotFoundError:
        raise InvalidArchive(f"{file} does not exist") from None
    except (OSError, EOFError, zlib.error, msgspec.MsgspecError, ValueError) as error:
        raise InvalidArchive(f"{file} is no archive, or was cut or changed: {error}") from error
    raise InvalidArchive(f"{file} does not have all of its events")


def _line(event: Event, payload: bytes) -> _Line:
    return _Line(event.seq, event.at, event.kind, payload, event.blob, event.seal)


def _event(line: _Line) -> Event:
    body = line.payload[:HEAD_SIZE] if line.blob else line.payload
    return Event(line.seq, line.at, line.kind, body, line.blob, line.seal)


def _encoded(line: Struct) -> bytes:
    return msgspec.json.encode(line) + b"\n"
