"""Typed documents: a bucket of records whose values are of one type."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct

from ..errors import InvalidEntry, UnreadableRecord, WrongRevision
from .contract import Records, Watch
from .events import Durability, Gone, Record

T = TypeVar("T")

_log = logging.getLogger(__name__)


class Document(Struct, Generic[T], frozen=True):
    """A record with its value as what it is."""

    key: str
    revision: int
    value: T


class Bucket(Generic[T]):
    """The documents of one type: a msgspec Struct, or whatever msgspec can encode."""

    def __init__(self, records: Records, name: str, kind: type[T]) -> None:
        self._records = records
        self._encode = msgspec.json.Encoder().encode
        self._kind = kind
        self._decode = msgspec.json.Decoder(kind).decode
        self.name = name

    async def create(
        self, key: str, value: T, durability: Durability = Durability.PROCESS
    ) -> Document[T]:
        """Make a new one; WrongRevision if there is one."""
        revision = await self._records.create(self.name, key, self._encoded(value), durability)
        return Document(key, revision, value)

    async def get(self, key: str) -> Document[T] | None:
        """The document, or None; UnreadableRecord if it is not of this bucket's type."""
        record = await self._records.get(self.name, key)
        return self._document(record) if record else None

    async def put(
        self,
        key: str,
        value: T,
        expected_revision: int,
        durability: Durability = Durability.PROCESS,
    ) -> Document[T]:
        """Change it if it is still at that revision (0: if there is none), else WrongRevision."""
        encoded = self._encoded(value)
        revision = await self._records.put(self.name, key, encoded, expected_revision, durability)
        return Document(key, revision, value)

    async def change(
        self,
        key: str,
        how: Callable[[T | None], T],
        durability: Durability = Durability.PROCESS,
    ) -> Document[T]:
        """Make the new value from the one that is there; again, if somebody came between."""
        while True:
            found = await self.get(key)
            value, revision = (found.value, found.revision) if found else (None, 0)
            try:
                return await self.put(key, how(value), revision, durability)
            except WrongRevision:
                continue

    async def delete(
        self, key: str, expected_revision: int, durability: Durability = Durability.PROCESS
    ) -> int:
        return await self._records.delete(self.name, key, expected_revision, durability)

    async def list(
        self, prefix: str = "", where: Callable[[T], bool] | None = None
    ) -> list[Document[T]]:
        """By key. One that can't be read is left out, and a warning is logged: see `get`."""
        records = await self._records.list(self.name, prefix)
        documents = (self._readable(record) for record in records)
        return [d for d in documents if d and (where is None or where(d.value))]

    def watch(self, prefix: str = "") -> TypedWatch[T]:
        """The present state, then changes. One that can't be read is left out, with a warning."""
        return TypedWatch(self._records.watch(self.name, prefix), self._readable)

    def _encoded(self, value: T) -> bytes:
        """As it will be read again: what can't be is refused here."""
        try:
            encoded = self._encode(value)
            self._decode(encoded)
        except (TypeError, ValueError) as error:
            kind = getattr(self._kind, "__name__", self._kind)
            raise InvalidEntry(f"bucket {self.name!r} holds {kind}: {error}") from error
        return encoded

    def _document(self, record: Record) -> Document[T]:
        try:
            return Document(record.key, record.revision, self._decode(record.value))
        except msgspec.MsgspecError as error:
            raise UnreadableRecord(self.name, record.key, str(error)) from error

    def _readable(self, record: Record) -> Document[T] | None:
        try:
            return self._document(record)
        except UnreadableRecord as error:
            _log.warning("left out: %s", error)
            return None


class TypedWatch(Generic[T]):
    """A watch that gives documents."""

    def __init__(self, watch: Watch, readable: Callable[[Record], Document[T] | None]) -> None:
        self._watch = watch
        self._readable = readable

    def close(self) -> None:
        self._watch.close()

    def __aiter__(self) -> AsyncIterator[list[Document[T] | Gone]]:
        return self

    async def __anext__(self) -> list[Document[T] | Gone]:
        changes = await self._watch.__anext__()
        typed = [c if isinstance(c, Gone) else self._readable(c) for c in changes]
        return [change for change in typed if change]
