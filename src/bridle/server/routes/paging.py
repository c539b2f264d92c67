"""Parts of long lists: where one ends, the next begins, whatever came or went meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, TypeAlias, TypeVar

from litestar.params import QueryParameter

from ..problems import Problem
from ..shapes.pages import Page

T = TypeVar("T")

LIMIT = 100
#: When something was made, and its id: the order of all lists.
Mark: TypeAlias = tuple[float, str]

PageAfter: TypeAlias = Annotated[
    str,
    QueryParameter(max_length=300, description="`next` of the part before; without it, the first."),
]
PageLimit: TypeAlias = Annotated[
    int, QueryParameter(ge=1, le=1000, description="How many, at most.")
]


def page_of(found: Sequence[T], mark: Callable[[T], Mark], after: str, limit: int) -> Page[T]:
    """Of a list that is in order."""
    if after:
        begin = _mark_in(after)
        found = [one for one in found if mark(one) > begin]
    items = list(found[:limit])
    return Page(items=items, next=_text(mark(items[-1])) if len(found) > limit else None)


def _text(mark: Mark) -> str:
    return f"{mark[0]!r}_{mark[1]}"


def _mark_in(text: str) -> Mark:
    moment, _, name = text.partition("_")
    try:
        return float(moment), name
    except ValueError:
        words = f"`after` is no place in this list: {text[:40]!r}."
        raise Problem(400, "invalid_cursor", words, "Give `next` of the part before.") from None
