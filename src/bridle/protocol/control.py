"""The control envelopes, and what the CLI asks of us (protocol.md sections 2 and 3)."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import UNSET, Raw, Struct, UnsetType, field

from .blocks import KnownBlock
from .hook_outputs import AsyncHookOutput, HookOutput
from .hooks import AnyHookInput
from .permissions import Allow, Deny


class _Asked(Struct, tag_field="subtype", kw_only=True, omit_defaults=True):
    """Something that the CLI asks and waits for."""


class McpServerSource(Struct, omit_defaults=True):
    name: str
    source: str | None = None


class CanUseTool(_Asked, tag="can_use_tool", kw_only=True):
    """May this tool run? Answered by `Allow` or `Deny`; it waits for ever."""

    tool_name: str
    input: dict[str, Any]
    tool_use_id: str | None = None
    #: Rules that the CLI would add for "always": `content.suggestions` reads them.
    permission_suggestions: Raw = Raw()
    blocked_path: str | None = None
    decision_reason: str | None = None
    decision_reason_type: str | None = None
    title: str | None = None
    display_name: str | None = None
    description: str | None = None
    agent_id: str | None = None
    mcp_server: McpServerSource | None = None
    requires_user_interaction: bool = False
    server_policy_ask_only: bool = False
    decision_reason_hook_event: str | None = None
    decision_reason_hook_source: str | None = None
    default_to_no: bool = False
    suppress_always_allow_rule: bool = False
    matched_ask_rule: dict[str, Any] | None = None


class HookCallback(_Asked, tag="hook_callback", kw_only=True):
    """A hook that we registered is called. Answered by `HookOutput` or `AsyncHookOutput`."""

    callback_id: str
    input: AnyHookInput
    tool_use_id: str | None = None


class McpMessage(_Asked, tag="mcp_message", kw_only=True):
    """JSON-RPC for an MCP server inside our process. Answered by `McpAnswer`, notifications too."""

    server_name: str
    message: dict[str, Any]


class ElicitationRequest(_Asked, tag="elicitation", kw_only=True):
    """An MCP server asks the user for input. Answered by `ElicitationAnswer`."""

    mcp_server_name: str
    message: str
    #: The id of the control request that it came in.
    request_id: str | None = None
    mode: str | None = None
    url: str | None = None
    elicitation_id: str | None = None
    requested_schema: dict[str, Any] | None = None
    title: str | None = None
    display_name: str | None = None
    description: str | None = None


class UserDialogRequest(_Asked, tag="request_user_dialog", kw_only=True):
    """The CLI wants to show a dialog. Answered by `DialogCompleted` or `DialogCancelled`."""

    dialog_kind: str
    payload: dict[str, Any] = {}
    tool_use_id: str | None = None


InboundRequest: TypeAlias = (
    CanUseTool | HookCallback | McpMessage | ElicitationRequest | UserDialogRequest
)


class McpAnswer(Struct):
    """The JSON-RPC response; for a notification, an empty result."""

    mcp_response: dict[str, Any]


class ElicitationAnswer(Struct):
    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | UnsetType = UNSET


class DialogCompleted(Struct, tag_field="behavior", tag="completed"):
    result: Any


class DialogCancelled(Struct, tag_field="behavior", tag="cancelled"):
    pass


Answer: TypeAlias = (
    Allow
    | Deny
    | HookOutput
    | AsyncHookOutput
    | McpAnswer
    | ElicitationAnswer
    | DialogCompleted
    | DialogCancelled
)

#: Which answers fit which request.
ANSWERS_TO: dict[type[InboundRequest], tuple[type[Answer], ...]] = {
    CanUseTool: (Allow, Deny),
    HookCallback: (HookOutput, AsyncHookOutput),
    McpMessage: (McpAnswer,),
    ElicitationRequest: (ElicitationAnswer,),
    UserDialogRequest: (DialogCompleted, DialogCancelled),
}


class ControlRequestLine(Struct, tag_field="type", tag="control_request"):
    request_id: str
    request: InboundRequest


#: The members of a response that hold whole control_request objects which still wait.
PENDING_LISTS = (
    "pending_permission_requests",
    "pending_user_dialog_requests",
    "pending_elicitation_requests",
)


class ControlSuccess(Struct, tag_field="subtype", tag="success", omit_defaults=True):
    request_id: str
    response: Raw = Raw()
    pending_permission_requests: list[Raw] = []
    pending_user_dialog_requests: list[Raw] = []
    pending_elicitation_requests: list[Raw] = []


class ControlFailure(Struct, tag_field="subtype", tag="error", omit_defaults=True):
    request_id: str
    error: str
    error_code: str | None = None
    pending_permission_requests: list[Raw] = []
    pending_user_dialog_requests: list[Raw] = []
    pending_elicitation_requests: list[Raw] = []


class ControlResponseLine(Struct, tag_field="type", tag="control_response"):
    response: ControlSuccess | ControlFailure


class ControlCancelLine(Struct, tag_field="type", tag="control_cancel_request"):
    """The asker takes its own request back. No reply."""

    request_id: str


Priority: TypeAlias = Literal["now", "next", "later"]


class PromptContent(Struct):
    content: str | list[KnownBlock]
    role: Literal["user"] = "user"


class Prompt(Struct, tag_field="type", tag="user"):
    """A user message to the CLI. With a uuid on it, queued and merged prompts can be told apart."""

    message: PromptContent
    session_id: str = ""
    parent_tool_use_id: str | None = None
    uuid: str | UnsetType = UNSET
    priority: Priority | UnsetType = UNSET
    should_query: bool | UnsetType = field(name="shouldQuery", default=UNSET)
    #: Whether a program has put it together: new CLIs do not read the files that it mentions then.
    client_composed: bool | UnsetType = UNSET
