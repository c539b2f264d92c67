"""Ctrl-C: once it is a wish, twice an order."""

from __future__ import annotations

import pytest

from bridle.cli.terminal import signals
from bridle.cli.terminal.signals import CtrlC


class Pressed:
    """Somebody at the keyboard, and what each Ctrl-C was taken for."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.is_underway = False
        self.ctrl_c = CtrlC(
            lambda: self.heard.append("wish"),
            lambda: self.heard.append("order"),
            lambda: self.is_underway,
        )


async def test_twice_in_a_row_is_an_order() -> None:
    pressed = Pressed()
    for _ in range(3):
        pressed.ctrl_c.pressed()
    assert pressed.heard == ["wish", "order", "order"]


async def test_much_later_it_is_a_wish_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "TWICE_SECONDS", -1.0)  # all that comes is late
    pressed = Pressed()
    for _ in range(3):
        pressed.ctrl_c.pressed()
    assert pressed.heard == ["wish", "wish", "wish"]


async def test_while_the_wish_is_being_carried_out_it_is_an_order_however_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(signals, "TWICE_SECONDS", -1.0)
    pressed = Pressed()
    pressed.is_underway = True
    pressed.ctrl_c.pressed()
    pressed.ctrl_c.pressed()
    assert pressed.heard == ["wish", "order"]


async def test_after_something_else_was_done_it_is_a_wish_again() -> None:
    pressed = Pressed()
    pressed.ctrl_c.pressed()
    pressed.ctrl_c.forget()
    pressed.ctrl_c.pressed()
    assert pressed.heard == ["wish", "wish"]
