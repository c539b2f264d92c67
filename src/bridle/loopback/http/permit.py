"""`loopback_permit`: may this tool run? For CLIs that were not started by us.

Owns the tool's words, and that whatever goes wrong is a no. Who is asked, and for how long, is the
supervisor's (`outside`).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from ...approvals.errors import ApprovalsClosed
from ...errors import BridleError, JournalClosed, words_of
from ...protocol.control import CanUseTool
from ...protocol.permissions import Deny
from ...supervisor import Supervisor

NAME = "loopback_permit"
DESCRIPTION = (
    "Whether a tool may be used: asks Bridle's policy, then people. It is called by Claude Code "
    "itself (--permission-prompt-tool), and gives the JSON that it expects."
)
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "tool_name": {"type": "string"},
        "input": {"type": "object"},
        "tool_use_id": {"type": "string"},
    },
    "required": ["tool_name", "input", "tool_use_id"],
}

_Name = Annotated[str, Meta(min_length=1, max_length=1000)]
_log = logging.getLogger(__name__)


class Asked(Struct, frozen=True):
    """What the CLI sends; more than that is of no interest."""

    tool_name: _Name
    input: dict[str, Any]
    tool_use_id: _Name


async def permit(
    supervisor: Supervisor, session: str, arguments: Mapping[str, Any], patience: float
) -> str:
    """The answer, as the CLI reads it. Only a server that ends raises: it is asked again then."""
    try:
        given = msgspec.convert(dict(arguments), Asked)
        request = CanUseTool(
            tool_name=given.tool_name, input=given.input, tool_use_id=given.tool_use_id
        )
        decision = await supervisor.outside.ask(session, request, patience=patience)
        return msgspec.json.encode(decision).decode()
    except (ApprovalsClosed, JournalClosed):
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, it is no yes
        return denied(error)


def denied(error: Exception) -> str:
    if not isinstance(error, BridleError | msgspec.ValidationError):
        # Not its text: that may have in it what no log can hold.
        _log.error("what an agent elsewhere may do can't be told: %r", error)
    words = f"Bridle denied this: it could not be asked. {words_of(error)[:500]}"
    # Words may have anything in them, also what can't be written.
    return msgspec.json.encode(Deny(words.encode("utf-8", "replace").decode())).decode()
