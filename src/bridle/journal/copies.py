"""A copy of the anchors that was kept elsewhere, beside the file in the home.

The copy may have gaps: the command is given the newest of what has changed. It shows what the home
alone can't: that all of it was rolled back, or forged anew.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from ..errors import InvalidAnchors
from .anchors import DECODER, RESTORED, Anchor, Fault, Line, folded


class Compared(Struct, frozen=True):
    """What does not fit, and those anchors to compare the log with."""

    fault: Fault | None
    anchors: dict[str, Anchor]


def compare(copy: bytes, lines: list[Line]) -> Compared:
    """InvalidAnchors if the copy is none."""
    copied = _read(copy)
    here = {line.number: line.hash for line in lines}
    if lines:
        here[lines[0].number - 1] = lines[0].previous
    last = lines[-1].number if lines else 0
    if copied[-1].number > last:
        reason = (
            f"the copy goes on to number {copied[-1].number}, and the file of anchors ends with"
            f" {last}: the home is older than the copy"
        )
        return Compared(Fault(0, reason, RESTORED), folded(copied).streams)
    for line in copied:
        if line.number in here and here[line.number] != line.hash:
            reason = f"number {line.number} of the file of anchors is not the one in the copy"
            return Compared(Fault(0, reason, RESTORED), folded(copied).streams)
    if copied[-1].number not in here:
        reason = (
            f"the copy ends with number {copied[-1].number}, before the file of anchors begins:"
            " what was between can't be shown"
        )
        return Compared(Fault(0, reason, RESTORED), folded(copied).streams)
    return Compared(None, {})


def _read(copy: bytes) -> list[Line]:
    try:
        lines = [DECODER.decode(text) for text in copy.splitlines() if text.strip()]
    except (msgspec.MsgspecError, ValueError) as error:
        raise InvalidAnchors(f"the copy of the anchors can't be read: {error}") from None
    if not lines:
        raise InvalidAnchors("the copy of the anchors is empty")
    return sorted(lines, key=lambda line: line.number)
