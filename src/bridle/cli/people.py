"""Who sits at this terminal: a person, or an agent's process."""

from __future__ import annotations

import os
import pwd
from pathlib import Path


def person_here() -> str:
    """What the machine calls whoever runs this, for the log. Variables are not asked: anybody can
    set them."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # in a container there is often no such user
        return f"user {os.geteuid()}"


def is_agent_of(home: Path) -> bool:
    """Whether this process, or any above it, belongs to a launch of this home's."""
    from ..process.census import see

    process = see(os.getpid(), marks=True)
    while process is not None:
        # One that is just becoming another program is taken for what it might be.
        if process.launches is None:
            return True
        if any((home / "spool" / launch).is_dir() for launch in process.launches):
            return True
        if process.parent <= 1:
            return False
        process = see(process.parent, marks=True)
    return False
