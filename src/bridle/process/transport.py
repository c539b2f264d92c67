"""The seam between a session and the process that it talks to.

Owns the words that both sides use. A transport carries bytes in order and whole, tells when the
process is gone, and can end it; it knows nothing of the protocol.
"""

from __future__ import annotations

import signal
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

#: What it took to end the process, from the mildest to the last.
StopStep: TypeAlias = Literal["gone", "asked", "eof", "SIGINT", "SIGTERM", "SIGKILL"]


class Exit(Struct, frozen=True):
    """How the process ended. Both are None where somebody else reaped it."""

    code: int | None = None
    signal: int | None = None

    def __str__(self) -> str:
        if self.signal is not None:
            return f"was ended by {_signal_name(self.signal)}"
        if self.code is not None:
            return f"exited with {self.code}"
        return "ended, and another part of this program took its exit status"


class StopLimits(Struct, frozen=True):
    """How long each step of a stop may take, in seconds, and all of them together."""

    graceful: float = 5.0
    signal: float = 2.0
    total: float = 12.0


class Stopped(Struct, frozen=True):
    """How a stop went. `survivors` are pids that outlived even SIGKILL (in a kernel call)."""

    step: StopStep
    seconds: float
    exit: Exit | None = None
    survivors: tuple[int, ...] = ()


class Receiver(Protocol):
    """What a session lets its transport tell."""

    def received(self, data: bytes, /) -> None:
        """The next bytes of the output."""

    def ended(self) -> None:
        """The output is over. `Transport.exit` tells how the process ended, if it did."""

    def complained(self, text: str, /) -> None:
        """Lines of stderr that came together."""


class Transport(Protocol):
    """One process, over whatever carries its bytes."""

    @property
    def version(self) -> str | None:
        """The CLI's version, where it is known before it says anything."""

    @property
    def exit(self) -> Exit | None:
        """How the process ended; None while it runs."""

    @property
    def stderr(self) -> str:
        """The last of what it wrote to stderr."""

    async def start(self, receiver: Receiver, /) -> None:
        """Start the process; from now on `receiver` is told."""

    def write(self, data: bytes, /) -> None:
        """Whole lines for the process: never torn, in the order of the calls, never waiting."""

    def close_input(self) -> None:
        """No more will be written: what was, is delivered first."""

    async def stop(self, limits: StopLimits, /, *, asked: bool = False) -> Stopped:
        """End it, and all that it has started. `asked`: it was told to end by itself."""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
