"""Readings of what messages hold: tool output, exit codes, slash-command output, session ids.

Owns the differences between CLI versions in how such things are written down. Pure functions over
decoded messages; nothing here raises on what the CLI said.
"""

from __future__ import annotations

import base64
import re
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from .blocks import Base64Source, Block, ImageBlock, TextBlock, ToolResultBlock
from .careful import members_of, text_in
from .codec import DECODE_ERRORS
from .control import CanUseTool, HookCallback, InboundRequest
from .hooks import PermissionRequest
from .messages import Assistant, ConversationReset, Message, StreamEvent, User
from .permissions import PermissionUpdate
from .system import LocalCommandOutput, SystemMessage
from .unknown import Unknown


class Json(Struct, frozen=True):
    """A JSON value that was found inside a string (a struct, so that `null` differs from none)."""

    value: Any


class Text(Struct, frozen=True):
    text: str

    def json(self) -> Json | None:
        """The JSON that the text is, parsed on request; None where it is not JSON."""
        return parse_json(self.text)


class Image(Struct, frozen=True):
    data: bytes
    media_type: str


class Mixed(Struct, frozen=True):
    """Several parts in their order; `Unknown` for a block that is neither text nor image."""

    parts: tuple[Text | Image | Unknown, ...]

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))


ToolOutput: TypeAlias = Text | Image | Mixed


def tool_output(result: ToolResultBlock) -> ToolOutput:
    """What a tool gave back: text, one image, or several parts."""
    if isinstance(result.content, str):
        return Text(result.content)
    parts = tuple(_part(block) for block in result.content)
    if len(parts) == 1 and not isinstance(parts[0], Unknown):
        return parts[0]
    if parts and all(isinstance(part, Text) for part in parts):
        return Text("\n".join(part.text for part in parts if isinstance(part, Text)))
    return Mixed(parts) if parts else Text("")


def parse_json(text: str) -> Json | None:
    """JSON inside of a string, or None."""
    try:
        return Json(msgspec.json.decode(text))
    except (*DECODE_ERRORS, UnicodeEncodeError):
        return None


def structured_result(message: User) -> Json | None:
    """The tool's structured result (`tool_use_result`), decoded on request."""
    if not message.tool_use_result:
        return None
    try:
        return Json(msgspec.json.decode(message.tool_use_result))
    except DECODE_ERRORS:
        return None


def tool_results(message: User) -> list[ToolResultBlock]:
    content = message.message.content
    if isinstance(content, str):
        return []
    return [block for block in content if isinstance(block, ToolResultBlock)]


_EXIT_CODE = re.compile(r"(?:Error: )?Exit code (\d{1,9})\b")
_IN_BACKGROUND = "Command running in background"


def bash_exit_code(result: ToolResultBlock) -> int | None:
    """The exit code of a Bash call, or None where it has not run to its end.

    CLIs write no code on success, and `Exit code N` before the output of a failure; some write
    JSON with `exitCode` and `output`.
    """
    output = tool_output(result)
    text = output.text if isinstance(output, Text | Mixed) else ""
    if result.is_error:
        found = _EXIT_CODE.match(text)
        return int(found[1]) if found else None
    if text.startswith(_IN_BACKGROUND):
        return None
    inner = parse_json(text) if text.startswith("{") else None
    match inner.value if inner else None:
        case {"exitCode": int(code), "output": _}:
            return code
    return 0


_LOCAL_COMMAND = re.compile(
    r"<local-command-(?:stdout|stderr)>(.*?)</local-command-(?:stdout|stderr)>", re.DOTALL
)


def local_command_output(message: Message | Unknown) -> str | None:
    """The output of a slash command that the CLI ran by itself, however that CLI writes it."""
    match message:
        case LocalCommandOutput():
            return message.content
        case User() if isinstance(message.message.content, str):
            found: list[str] = _LOCAL_COMMAND.findall(message.message.content)
            return "\n".join(found) if found else None
        case Assistant(local_command_source=source) if source is not None:
            return _text_of(message.message.content)
        case _:
            return None


def suggestions(request: CanUseTool | PermissionRequest) -> list[PermissionUpdate | Unknown]:
    """The permission updates that the CLI suggests for "always allow"."""
    if not request.permission_suggestions:
        return []
    try:
        raws = msgspec.json.decode(request.permission_suggestions, type=list[msgspec.Raw])
    except DECODE_ERRORS as error:
        return [Unknown("", bytes(request.permission_suggestions), str(error))]
    return [_update(bytes(raw)) for raw in raws]


def unknown_parts(value: Message | InboundRequest | Unknown) -> list[Unknown]:
    """What of a message or a request no type fits: all of it, or blocks and events inside."""
    match value:
        case Unknown():
            return [value]
        case StreamEvent(event=Unknown() as event):
            return [event]
        case HookCallback(input=Unknown() as told):
            return [told]
        case Assistant() | User() if not isinstance(value.message.content, str):
            return _unknown_blocks(value.message.content)
        case _:
            return []


def session_id_of(message: Message | Unknown) -> str | None:
    """The session id, where this message may give it.

    `system` lines, and the line that announces a reset, may carry an id that is about to change.
    """
    if isinstance(message, SystemMessage | ConversationReset | Unknown):
        return None
    return message.session_id or None


def _text_of(content: list[Block]) -> str:
    return "".join(block.text for block in content if isinstance(block, TextBlock))


def _unknown_blocks(blocks: list[Block]) -> list[Unknown]:
    found: list[Unknown] = []
    waiting = list(blocks)
    while waiting:
        block = waiting.pop()
        if isinstance(block, Unknown):
            found.append(block)
        elif isinstance(block, ToolResultBlock) and not isinstance(block.content, str):
            waiting += block.content
    return found


def _update(raw: bytes) -> PermissionUpdate | Unknown:
    try:
        return _UPDATE.decode(raw)
    except DECODE_ERRORS as error:
        return Unknown(text_in(members_of(raw), "type"), raw, str(error))


_UPDATE: msgspec.json.Decoder[PermissionUpdate] = msgspec.json.Decoder(PermissionUpdate)


def _part(block: Block) -> Text | Image | Unknown:
    match block:
        case Unknown():
            return block
        case TextBlock():
            return Text(block.text)
        case ImageBlock(source=Base64Source() as source):
            try:
                return Image(base64.b64decode(source.data, validate=True), source.media_type)
            except ValueError as error:
                return Unknown("image", msgspec.json.encode(block), f"not base64: {error}")
        case _:
            name = str(block.__struct_config__.tag)
            return Unknown(name, msgspec.json.encode(block), "neither text nor an image")
