"""Lines as CLIs write them, short."""

from __future__ import annotations

from typing import Any

SESSION = "00000000-0000-4000-8000-00000000000a"


def init(*uuids: str, names: bool = False, **more: Any) -> dict[str, Any]:
    """The beginning of a turn; new CLIs (`names`, or uuids) tell whose prompts it takes up."""
    told: dict[str, Any] = {"user_message_uuids": list(uuids)} if uuids else {}
    if names or uuids:
        told["capabilities"] = ["msg_lifecycle_v1"]
    state = {"cwd": "/", "model": "m", "permissionMode": "default", "session_id": SESSION}
    return {"type": "system", "subtype": "init", **state, **told, **more}


def say(text: str, **more: Any) -> dict[str, Any]:
    message = {"id": "m", "model": "m", "content": [{"type": "text", "text": text}]}
    return {"type": "assistant", "message": message, "session_id": SESSION, **more}


def delta(text: str) -> dict[str, Any]:
    inner = {"type": "text_delta", "text": text}
    event = {"type": "content_block_delta", "index": 0, "delta": inner}
    return {"type": "stream_event", "event": event, "session_id": SESSION}


def result(text: str = "", *uuids: str, **more: Any) -> dict[str, Any]:
    named = {"user_message_uuids": list(uuids)} if uuids else {}
    known = {"subtype": "success", "is_error": False, "result": text, "session_id": SESSION}
    return {"type": "result", **known, **named, **more}


def replay(uuid: str, text: str = "again") -> dict[str, Any]:
    message = {"role": "user", "content": text}
    return {"type": "user", "message": message, "uuid": uuid, "isReplay": True}


def life(uuid: str, state: str) -> dict[str, Any]:
    return {"type": "command_lifecycle", "command_uuid": uuid, "state": state}
