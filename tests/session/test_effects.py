"""Whether what a tool was run with is what was judged."""

from __future__ import annotations

from typing import Any

import pytest

from bridle.session.effects import differs

JUDGED = {"command": "ls", "timeout": 5, "flags": ["a"]}


@pytest.mark.parametrize("used", [
    JUDGED,
    JUDGED | {"run_in_background": False, "description": None, "more": ""},
])  # fmt: skip
def test_what_was_left_out_may_be_filled_in(used: dict[str, Any]) -> None:
    assert not differs(JUDGED, used)
    assert not differs(used, JUDGED)


@pytest.mark.parametrize("name", ["command", "timeout", "flags", "new"])
@pytest.mark.parametrize("value", ["other", 0, True, ["a", "b"]])
def test_any_other_value_of_any_name_is_another_input(name: str, value: object) -> None:
    if name == "new" and not value:
        return
    assert differs(JUDGED, JUDGED | {name: value})
    assert differs(JUDGED | {name: value}, JUDGED)


@pytest.mark.parametrize("name", sorted(JUDGED))
def test_what_is_gone_is_another_input(name: str) -> None:
    used = {other: value for other, value in JUDGED.items() if other != name}
    assert differs(JUDGED, used)
