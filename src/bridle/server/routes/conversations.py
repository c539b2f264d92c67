"""Conversations that Claude Code has stored by itself: a session can go on with one."""

from __future__ import annotations

import asyncio
from typing import Annotated

from litestar import Response, get
from litestar.params import QueryParameter

from ...process.spec import LaunchSpec
from ...session.policies import homes_of
from ...session.transcripts import StoredSession, list_sessions
from ..access import HttpRequest
from ..given import folder_of
from ..house import TheHouse
from ..shapes.conversations import ConversationView
from ..shown import Reveal, shown

#: The newest; of older ones nobody knows what they were.
MOST = 200

Folder = Annotated[str, QueryParameter(max_length=4096, description="An absolute path.")]


@get("/conversations")
async def list_conversations(
    request: HttpRequest, house: TheHouse, folder: Folder, reveal: Reveal = False
) -> Response[list[ConversationView]]:
    """What Claude Code has stored of a folder, the newest first: for `resume` of a new session."""
    found = await asyncio.to_thread(_of, folder_of(folder))
    ours = {one.claude_session_id: one.id for one in house.supervisor.list()}
    views = [
        ConversationView(
            id=one.id,
            modified=one.modified,
            bytes=one.size,
            first_prompt=one.first_prompt,
            session=ours.get(one.id),
        )
        for one in found[:MOST]
    ]
    return shown(house, request.user, reveal, views)


def _of(folder: str) -> list[StoredSession]:
    return list_sessions(folder, homes_of(LaunchSpec(cwd=folder))["claude_home"] or None)


HANDLERS = [list_conversations]
