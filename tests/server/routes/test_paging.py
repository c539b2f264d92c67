"""Parts of a long list: together they are the whole, each thing once."""

from __future__ import annotations

import pytest

from bridle.server.problems import Problem
from bridle.server.routes.paging import Mark, page_of


def parts(found: list[Mark], limit: int) -> list[list[Mark]]:
    pages, after = [], ""
    while True:
        page = page_of(found, lambda one: one, after, limit)
        pages.append(list(page.items))
        if page.next is None:
            return pages
        after = page.next


def test_things_that_were_made_at_the_same_moment_are_all_in_some_part() -> None:
    found: list[Mark] = sorted((float(number // 5), f"id_{number}") for number in range(23))
    for limit in (1, 2, 3, 5, 22, 23, 24):
        pages = parts(found, limit)
        assert [one for page in pages for one in page] == found
        assert {len(page) for page in pages[:-1]} <= {limit}
        assert 0 < len(pages[-1]) <= limit


def test_a_mark_that_was_made_up_is_refused() -> None:
    with pytest.raises(Problem) as refused:
        page_of([(1.0, "a")], lambda one: one, "yesterday_a", 5)
    assert refused.value.code == "invalid_cursor"
