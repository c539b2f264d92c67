"""What is in an agent's inbox, held against what we have written down. Pure.

An inbox is our outgoing log, byte for byte: what is logged and not there is to be added, and what
is there and not logged is foreign. But for lines that stop something: those went out first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from ..errors import InvalidState
from ..protocol.control import ControlCancelLine
from ..protocol.outbound import Answering, Asking, read_written, subtype_of
from ..session.outgoing import STOPS
from ..session.recall import is_no


class Compared(Struct, frozen=True):
    """`missing` is to be appended. `unlogged` lines are ours, and were not written down.
    `foreign` is what we never wrote."""

    missing: bytes
    unlogged: tuple[bytes, ...] = ()
    foreign: bytes = b""


def compare(found: bytes, logged: Sequence[bytes]) -> Compared:
    """`logged` are whole lines, in the order in which they were to be written."""
    *lines, tail = found.split(b"\n")
    open_ = Counter(logged)
    unlogged: list[bytes] = []
    for line in (line + b"\n" for line in lines):
        if open_[line]:
            open_[line] -= 1
        elif is_harmless(line):
            unlogged.append(line)
        else:
            return Compared(b"", tuple(unlogged), line)
    # Of equal lines those that came last are not there.
    left = [line for line in reversed(logged) if _took(open_, line)]
    left.reverse()
    if tail:
        begun = next((line for line in left if line.startswith(tail)), None)
        if begun is None:
            return Compared(b"", tuple(unlogged), tail)
        left.remove(begun)
        left.insert(0, begun[len(tail) :])
    return Compared(b"".join(left), tuple(unlogged))


def _took(open_: Counter[bytes], line: bytes) -> bool:
    if not open_[line]:
        return False
    open_[line] -= 1
    return True


def is_harmless(line: bytes) -> bool:
    """Whether a line lets nothing happen that would not happen without it."""
    try:
        written = read_written(line)
    except InvalidState:
        return False
    match written:
        case Answering():
            return is_no(line)
        case Asking(request=request):
            return subtype_of(request) in STOPS
    return isinstance(written, ControlCancelLine)
