"""Who sits at this terminal, by name. Whether it is an agent's process is `server.inside`'s."""

from __future__ import annotations

import os
import pwd


def person_here() -> str:
    """What the machine calls whoever runs this, for the log. Variables are not asked: anybody can
    set them."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # in a container there is often no such user
        return f"user {os.geteuid()}"
