"""Who sits at this terminal."""

from __future__ import annotations

import getpass


def person_here() -> str:
    """The name of the user, for the log."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "somebody"
