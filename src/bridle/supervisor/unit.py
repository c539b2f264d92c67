"""The systemd unit of a program that looks after agents, and is restarted without them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files


def unit_of(command: str, program: Sequence[str]) -> str:
    """One that does not end the agents when it is restarted. `command` is what prints it."""
    text = (files(__package__) / "bridle.service").read_text()
    words = " ".join(_quoted(word) for word in program)
    return text.replace("@COMMAND@", command).replace("@PROGRAM@", words)


def _quoted(word: str) -> str:
    """As systemd reads it, which knows variables, specifiers and escapes of its own."""
    plain = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{plain}"' if not plain or set(plain) & set(" \t\"'\\;") else plain
