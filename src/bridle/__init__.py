"""Bridle: run Claude Code agents, decide what they may do, keep every event.

    async with bridle.connect(cwd="app", approver=ask_me) as session:
        turn = await session.send("Make the tests pass")
        print((await turn.result()).text)

What one needs most is here, and loaded when it is used; `bridle.protocol` has the types of all
messages, hooks and requests, `bridle.testing` the kit, `bridle.errors` the tree of errors.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from .errors import (
    BridleError,
    CliNotFound,
    ControlFailed,
    NotSupported,
    RequestTimedOut,
    SessionEnded,
    TurnFailed,
)

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .policy.policy import Policy
    from .process.spec import LaunchSpec
    from .process.transport import StopLimits, Stopped
    from .protocol.control import CanUseTool
    from .protocol.hook_outputs import HookOutput, pre_tool_use
    from .protocol.messages import Assistant, Message, Result, User
    from .protocol.outbound import WithMentions
    from .protocol.permissions import Allow, Deny
    from .protocol.requests import Agent
    from .protocol.unknown import Unknown
    from .session.connect import connect, run, run_sync
    from .session.folder import Survey, survey
    from .session.hooks import Hooks
    from .session.images import image
    from .session.policies import Ungated, in_force, load_policy
    from .session.reminder import remind_to_commit
    from .session.session import Session
    from .session.tools import tool
    from .session.transcripts import StoredSession, Transcript, list_sessions, read_transcript
    from .session.turns import Turn

#: Where each name comes from: nothing is loaded before it is used.
_HOMES = {
    "Agent": "protocol.requests",
    "Allow": "protocol.permissions",
    "Assistant": "protocol.messages",
    "CanUseTool": "protocol.control",
    "Deny": "protocol.permissions",
    "HookOutput": "protocol.hook_outputs",
    "Hooks": "session.hooks",
    "LaunchSpec": "process.spec",
    "Message": "protocol.messages",
    "Policy": "policy.policy",
    "Result": "protocol.messages",
    "Session": "session.session",
    "StopLimits": "process.transport",
    "Stopped": "process.transport",
    "StoredSession": "session.transcripts",
    "Survey": "session.folder",
    "Transcript": "session.transcripts",
    "Turn": "session.turns",
    "Ungated": "session.policies",
    "Unknown": "protocol.unknown",
    "User": "protocol.messages",
    "WithMentions": "protocol.outbound",
    "connect": "session.connect",
    "image": "session.images",
    "in_force": "session.policies",
    "list_sessions": "session.transcripts",
    "load_policy": "session.policies",
    "pre_tool_use": "protocol.hook_outputs",
    "read_transcript": "session.transcripts",
    "remind_to_commit": "session.reminder",
    "run": "session.connect",
    "run_sync": "session.connect",
    "survey": "session.folder",
    "tool": "session.tools",
}

__all__ = [
    "Agent",
    "Allow",
    "Assistant",
    "BridleError",
    "CanUseTool",
    "CliNotFound",
    "ControlFailed",
    "Deny",
    "HookOutput",
    "Hooks",
    "LaunchSpec",
    "Message",
    "NotSupported",
    "Policy",
    "RequestTimedOut",
    "Result",
    "Session",
    "SessionEnded",
    "StopLimits",
    "Stopped",
    "StoredSession",
    "Survey",
    "Transcript",
    "Turn",
    "TurnFailed",
    "Ungated",
    "Unknown",
    "User",
    "WithMentions",
    "__version__",
    "connect",
    "image",
    "in_force",
    "list_sessions",
    "load_policy",
    "pre_tool_use",
    "read_transcript",
    "remind_to_commit",
    "run",
    "run_sync",
    "survey",
    "tool",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'bridle' has no attribute {name!r}")
    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
