"""Agents that run agents, put together for a server: the tools of those that we start.

Owns nothing: the tools are `bridle.loopback`'s, the server is `bridle.server`'s.
"""

from __future__ import annotations

from typing import Any


def loopback_options() -> dict[str, Any]:
    """For `serve`."""
    from ..loopback import tools_of

    return {"loopback": tools_of}
