"""The command's side of the API: `open_client` finds the server and gives a `Client`.

    async with open_client(settings) as client:
        made = await client.sessions.create(NewSession(folder="/app", prompt="Make the tests pass"))
        async for event in client.sessions.follow_transcript(made.id):
            ...

Owns no state: every answer is the server's. Answers are the Structs of `bridle.server.shapes`.
"""

from __future__ import annotations

from .client import Client
from .find import open_client
from .sse import ServerEvent

__all__ = ["Client", "ServerEvent", "open_client"]
