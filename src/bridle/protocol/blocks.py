"""Content blocks: the parts of a message, as the model's API and the CLI write them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from .unknown import Unknown


class _Block(Struct, tag_field="type", omit_defaults=True, gc=False):
    """One part of a message; `type` on the wire tells which."""


class TextBlock(_Block, tag="text"):
    text: str


class ThinkingBlock(_Block, tag="thinking"):
    thinking: str
    signature: str = ""


class RedactedThinkingBlock(_Block, tag="redacted_thinking"):
    data: str


class ToolUseBlock(_Block, tag="tool_use"):
    id: str
    name: str
    input: dict[str, Any]


class ServerToolUseBlock(_Block, tag="server_tool_use"):
    """A tool that the API itself runs (web search and the like)."""

    id: str
    name: str
    input: dict[str, Any]


class Base64Source(Struct, tag_field="type", tag="base64", gc=False):
    data: str
    media_type: str


class UrlSource(Struct, tag_field="type", tag="url", gc=False):
    url: str


class FileSource(Struct, tag_field="type", tag="file", gc=False):
    file_id: str


class TextSource(Struct, tag_field="type", tag="text", gc=False):
    data: str
    media_type: str = "text/plain"


class ImageBlock(_Block, tag="image"):
    source: Base64Source | UrlSource | FileSource


class DocumentBlock(_Block, tag="document"):
    source: Base64Source | UrlSource | FileSource | TextSource
    title: str | None = None


class ToolReferenceBlock(_Block, tag="tool_reference"):
    """A deferred tool that a tool search has found."""

    tool_name: str


class ToolResultBlock(_Block, tag="tool_result"):
    """What a tool gave back. `content` is a string, or blocks (text, images, documents)."""

    tool_use_id: str
    content: str | list[Block] = ""
    is_error: bool | None = None


KnownBlock: TypeAlias = (
    TextBlock
    | ThinkingBlock
    | RedactedThinkingBlock
    | ToolUseBlock
    | ServerToolUseBlock
    | ImageBlock
    | DocumentBlock
    | ToolReferenceBlock
    | ToolResultBlock
)

# A decoder can't be given `Unknown`, which has no tag: the codec puts it in place of a block that
# no type fits. Readers must be ready for it, so type checkers see it.
if TYPE_CHECKING:
    Block: TypeAlias = KnownBlock | Unknown
else:
    Block = KnownBlock
