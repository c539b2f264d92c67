"""The control protocol of the Claude Code CLI, without any I/O. `Connection` is the way in.

What one meets most is here; the modules hold the rest: `messages` and `system` (what the CLI
says), `control` (what it asks), `requests` and `answers` (what we ask and are told), `hooks` and
`hook_outputs`, `permissions`, `content` (readings of messages), `capabilities` (what each version
can do).
"""

from .capabilities import TESTED_VERSIONS, Capabilities
from .connection import Connection
from .control import CanUseTool, HookCallback, McpAnswer, McpMessage
from .events import (
    Counters,
    Event,
    Failure,
    LineIgnored,
    LineMalformed,
    LineOversized,
    MessageReceived,
    RequestReceived,
    RequestUnreadable,
    RequestWithdrawn,
    ResponseReceived,
    StreamEnded,
    Success,
)
from .hook_outputs import HookOutput, pre_tool_use
from .hooks import HookMatcher
from .messages import Assistant, Message, Result, StreamEvent, User
from .permissions import Allow, Deny, PermissionUpdate
from .unknown import Unknown

__all__ = [
    "TESTED_VERSIONS",
    "Allow",
    "Assistant",
    "CanUseTool",
    "Capabilities",
    "Connection",
    "Counters",
    "Deny",
    "Event",
    "Failure",
    "HookCallback",
    "HookMatcher",
    "HookOutput",
    "LineIgnored",
    "LineMalformed",
    "LineOversized",
    "McpAnswer",
    "McpMessage",
    "Message",
    "MessageReceived",
    "PermissionUpdate",
    "RequestReceived",
    "RequestUnreadable",
    "RequestWithdrawn",
    "ResponseReceived",
    "Result",
    "StreamEnded",
    "StreamEvent",
    "Success",
    "Unknown",
    "User",
    "pre_tool_use",
]
