"""A part of a list."""

from __future__ import annotations

from typing import Generic, TypeVar

from msgspec import Struct

T = TypeVar("T")


class Page(Struct, Generic[T], frozen=True, kw_only=True):
    """`next` is what to give as `after` for the part behind it; None at the end."""

    items: list[T]
    next: str | None = None
