"""One request that a scripted model was sent, with what tests ask of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import msgspec

_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)


class ModelRequest:
    """A POST to /v1/messages. `body` is all of it; the rest are readings of it."""

    def __init__(self, body: dict[str, Any], headers: dict[str, str]) -> None:
        self.body = body
        self.headers = headers

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))

    @property
    def messages(self) -> list[dict[str, Any]]:
        return list(self.body.get("messages", []))

    @cached_property
    def tools(self) -> list[str]:
        """The names of the tools that the model is offered."""
        return [str(tool.get("name")) for tool in self.body.get("tools") or []]

    @cached_property
    def system(self) -> str:
        """The system prompt; new CLIs put parts of it between the messages."""
        inside = [_text(m["content"]) for m in self.messages if m.get("role") == "system"]
        return "\n".join([_text(self.body.get("system") or ""), *inside])

    @cached_property
    def prompt(self) -> str:
        """The user's newest words, without the reminders that the CLI puts around them."""
        for message in reversed(self.messages):
            if message.get("role") == "user":
                words = _REMINDER.sub("", _text(message["content"])).strip()
                if words:
                    return words
        return ""

    @cached_property
    def everything(self) -> str:
        return "\n".join([self.system, *(_text(m["content"]) for m in self.messages)])

    @cached_property
    def tool_results(self) -> dict[str, str]:
        """What the tools gave back, by tool-use id."""
        return {
            str(block.get("tool_use_id")): _text(block.get("content") or "")
            for block in self._blocks()
            if block.get("type") == "tool_result"
        }

    @property
    def last_result(self) -> str:
        """What the newest tool gave back."""
        return next(reversed(self.tool_results.values()), "")

    @cached_property
    def images(self) -> int:
        return sum(block.get("type") == "image" for block in self._blocks())

    def _blocks(self) -> Iterator[dict[str, Any]]:
        waiting = [message.get("content") for message in self.messages]
        while waiting:
            content = waiting.pop(0)
            if isinstance(content, list):
                for block in content:
                    if isinstance(block, dict):
                        yield block
                        waiting.append(block.get("content"))

    def __repr__(self) -> str:
        return f"<ModelRequest {self.model} {len(self.messages)} messages: {self.prompt[:60]!r}>"


def parse_request(body: bytes, headers: dict[str, str]) -> ModelRequest | None:
    try:
        return ModelRequest(msgspec.json.decode(body, type=dict[str, Any]), headers)
    except msgspec.DecodeError:
        return None


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = [block for block in content or [] if isinstance(block, dict)]
    return "\n".join(str(part["text"]) for part in parts if part.get("type") == "text")
