"""How hard the tests try: `make test` a little, `make test-all` much, `make soak` for long.

Tests that take more than a second are marked `slow`: `make test` leaves them out. Those that try
some more where there is time are marked `deeper`, and those of hypothesis are so by themselves:
`make test-all` runs them again.
"""

from __future__ import annotations

import os
from typing import Literal, TypeAlias, cast, get_args

Level: TypeAlias = Literal["quick", "all", "soak"]

LEVEL = cast(Level, os.environ.get("LEVEL", "quick"))
if LEVEL not in get_args(Level):
    raise ValueError(f"LEVEL is one of {', '.join(get_args(Level))}, not {LEVEL!r}")


def tries(quick: int, more: int, most: int | None = None) -> int:
    """How many, by the level."""
    return {"quick": quick, "all": more, "soak": most or more}[LEVEL]
