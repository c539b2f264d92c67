"""What can be stored: the rules for names, events, batches and documents. Nothing here stores."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from math import isfinite

from ..errors import InvalidEntry
from .events import (
    MAX_BATCH_BYTES,
    MAX_BATCH_EVENTS,
    MAX_BODY,
    MAX_NAME,
    MAX_SEQ,
    Durability,
    Event,
    Live,
    NewEvent,
)
from .store import Append


def prepared(
    stream: str,
    events: Sequence[NewEvent],
    expect: int,
    durability: Durability,
    future: asyncio.Future[int],
) -> Append:
    """The batch with its numbers, if it keeps the rules."""
    if not 0 < len(events) <= MAX_BATCH_EVENTS:
        raise InvalidEntry(f"a batch has 1 to {MAX_BATCH_EVENTS} events, not {len(events)}")
    if not 0 <= expect < MAX_SEQ - len(events):
        raise InvalidEntry(f"expect_last_seq is a stream's last number, and can't be {expect}")
    check_durability(durability)
    numbered, to_seal, size, is_ready = [], [], 0, True
    for seq, event in enumerate(events, expect + 1):
        body, kind = event.body, event.kind
        at = event.at + 0.0  # what is hashed and what is read back are the same number
        if type(body) is not bytes:
            raise InvalidEntry(f"a body is bytes, not {type(body).__name__} (in {kind!r})")
        if not isfinite(at):
            raise InvalidEntry(f"a time is in unix seconds, not {at} (in {kind!r})")
        if len(kind) > MAX_NAME or not kind.isprintable():
            check_name("kind", kind)
        length = len(body)
        if length > MAX_BODY:
            is_ready = False
        else:
            size += length
        if event.is_sealed:
            to_seal.append(seq - expect - 1)
        numbered.append(Event(seq, at, kind, body))
    if size > MAX_BATCH_BYTES:
        raise InvalidEntry(f"a batch of {size} bytes: at most {MAX_BATCH_BYTES}, split it")
    return Append(stream, expect, numbered, to_seal, durability, future, size, is_ready)


def check_live(events: Sequence[Live]) -> None:
    for event in events:
        if type(event) is not Live or type(event.body) is not bytes:
            raise InvalidEntry("publish takes a list of Live, with bytes for a body")


def check_document(value: bytes | None) -> None:
    if value is not None and len(value) > MAX_BODY:
        raise InvalidEntry(f"a document of {len(value)} bytes: at most {MAX_BODY}")


def check_durability(durability: Durability) -> None:
    """A slip here would be found by the next power loss."""
    if type(durability) is not Durability:
        raise InvalidEntry(f"{durability!r} is no Durability")


def check_name(what: str, name: str) -> None:
    if not 0 < len(name) <= MAX_NAME:
        raise InvalidEntry(f"a {what} has 1 to {MAX_NAME} characters, not {len(name)}")
    if not name.isprintable():
        raise InvalidEntry(f"a {what} has printable characters only, not {name[:40]!r}")
