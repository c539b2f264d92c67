"""Lines as a CLI writes them, built from small dicts, and readings of what we write."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

from bridle.protocol.connection import Connection
from bridle.protocol.events import Event, RequestReceived, RequestUnreadable

SESSION = "6f1b2c3d-0000-4000-8000-000000000001"
NONCE = "c0ffee"

_Kind = TypeVar("_Kind")


def connect(**options: Any) -> Connection:
    return Connection(nonce=NONCE, **options)


def line(message: Any) -> bytes:
    return json.dumps(message, ensure_ascii=False).encode() + b"\n"


def message(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "session_id": SESSION, "uuid": "u-1", **fields}


def assistant(*blocks: Any) -> dict[str, Any]:
    inner = {"id": "msg_1", "model": "claude", "role": "assistant", "content": list(blocks)}
    return message("assistant", message=inner, parent_tool_use_id=None)


def user(content: Any, **fields: Any) -> dict[str, Any]:
    return message("user", message={"role": "user", "content": content}, **fields)


def text(words: str = "hello") -> dict[str, Any]:
    return {"type": "text", "text": words}


def tool_result(content: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "toolu_1", "content": content, **fields}


def system(subtype: str, **fields: Any) -> dict[str, Any]:
    return message("system", subtype=subtype, **fields)


def init(**fields: Any) -> dict[str, Any]:
    told = {"cwd": "/w", "model": "claude", "permissionMode": "default", **fields}
    return system("init", **told)


def result(**fields: Any) -> dict[str, Any]:
    return message("result", **{"subtype": "success", "is_error": False, "result": "ok", **fields})


def control_request(request_id: str, subtype: str, /, **fields: Any) -> dict[str, Any]:
    request = {"subtype": subtype, **fields}
    return {"type": "control_request", "request_id": request_id, "request": request}


def can_use_tool(request_id: str = "ask-1", /, **fields: Any) -> dict[str, Any]:
    asked = {"tool_name": "Bash", "input": {"command": "ls"}, "tool_use_id": "toolu_1", **fields}
    return control_request(request_id, "can_use_tool", **asked)


def hook_callback(event: str, request_id: str = "hook-1", /, **fields: Any) -> dict[str, Any]:
    told = {"session_id": SESSION, "transcript_path": "/t", "cwd": "/w", "hook_event_name": event}
    return control_request(
        request_id, "hook_callback", callback_id="cb-1", input={**told, **fields}
    )


def pre_tool_use(request_id: str = "hook-1", /, **fields: Any) -> dict[str, Any]:
    tool = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "toolu_1"}
    return hook_callback("PreToolUse", request_id, **{**tool, **fields})


def mcp_message(request_id: str = "mcp-1") -> dict[str, Any]:
    rpc = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    return control_request(request_id, "mcp_message", server_name="ours", message=rpc)


def elicitation(request_id: str = "eli-1") -> dict[str, Any]:
    return control_request(request_id, "elicitation", mcp_server_name="s", message="Who?")


def user_dialog(request_id: str = "dia-1") -> dict[str, Any]:
    return control_request(request_id, "request_user_dialog", dialog_kind="pick", payload={"a": 1})


def success(request_id: str, response: Any = None, **beside: Any) -> dict[str, Any]:
    body = {"subtype": "success", "request_id": request_id, **beside}
    if response is not None:
        body["response"] = response
    return {"type": "control_response", "response": body}


def failure(request_id: str, error: str = "no", **beside: Any) -> dict[str, Any]:
    body = {"subtype": "error", "request_id": request_id, "error": error, **beside}
    return {"type": "control_response", "response": body}


def cancel(request_id: str) -> dict[str, Any]:
    return {"type": "control_cancel_request", "request_id": request_id}


def only(events: Sequence[Event], kind: type[_Kind]) -> _Kind:
    """The one event that came, which must be of this kind."""
    assert len(events) == 1, events
    event = events[0]
    assert isinstance(event, kind), event
    return event


def asked(connection: Connection, request: dict[str, Any]) -> RequestReceived:
    """Let the CLI ask this."""
    return only(connection.receive(line(request)), RequestReceived)


def written(data: bytes) -> Any:
    """What we wrote, which must be exactly one line."""
    assert data.endswith(b"\n")
    assert data.count(b"\n") == 1
    return json.loads(data)


def answer_in(data: bytes) -> Any:
    """The answer inside of a successful control_response that we wrote."""
    response = written(data)["response"]
    assert response["subtype"] == "success", response
    return response["response"]


def error_in(data: bytes) -> str:
    response = written(data)["response"]
    assert response["subtype"] == "error", response
    return str(response["error"])


def is_deny(data: bytes) -> bool:
    """Whether this answer keeps a tool from running when a PreToolUse hook asked."""
    specific = answer_in(data)["hookSpecificOutput"]
    return bool(
        specific["hookEventName"] == "PreToolUse" and specific["permissionDecision"] == "deny"
    )


class Refusal(NamedTuple):
    """A request that could not be read, and the line that was written for it."""

    event: RequestUnreadable
    reply: bytes


def refuse(connection: Connection, event: object) -> Refusal:
    assert isinstance(event, RequestUnreadable)
    assert connection.pending[event.request_id] is event
    reply = connection.fail(event.request_id, event.reason)
    assert json.loads(reply)["response"]["request_id"] == event.request_id
    assert event.request_id not in connection.pending
    return Refusal(event, reply)
