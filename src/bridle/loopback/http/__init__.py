"""The ways in for agents that Bridle has not started: MCP and JSON-RPC over HTTP.

`open_doors` gives them as ASGI applications, for whoever has a server. They know nothing of it but
what stands in a request's scope: `user`, with the caller's `session`, which a token has proved.
"""

from __future__ import annotations

from .doors import Door, DoorSettings, open_doors

__all__ = ["Door", "DoorSettings", "open_doors"]
