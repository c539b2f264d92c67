"""A turn of a script as the API sends it: server-sent events, or one whole message."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from typing import Any

import msgspec

from .http import ConnectionDropped
from .model_request import ModelRequest
from .script import Drop, Fail, Hold, Pause, Piece, RawBlock, Text, Thinking, ToolUse, Turn

INPUT_TOKENS = 10
OUTPUT_TOKENS = 20


async def wait_through(turn: Turn) -> None:
    """The pauses, holds and breaks of a turn whose answer comes in one piece."""
    for piece in turn.pieces:
        await _wait(piece)


def whole_message(turn: Turn, request: ModelRequest, number: int) -> dict[str, Any]:
    """The answer to a request that does not stream."""
    blocks = [_block(piece, number, index) for index, piece in _content(turn)]
    return {
        **_shell(request, number),
        "content": blocks,
        "stop_reason": turn.stop_reason,
        "usage": _usage(OUTPUT_TOKENS),
    }


async def write_stream(
    turn: Turn, request: ModelRequest, number: int
) -> AsyncGenerator[bytes, None]:
    """The answer as events, with the pauses, holds and breaks that the turn asks for."""
    yield _event("message_start", message=_shell(request, number))
    index = 0
    for piece in turn.pieces:
        if isinstance(piece, Pause | Hold | Drop):
            await _wait(piece)
        elif isinstance(piece, Fail):
            yield _event("error", error={"type": piece.kind, "message": piece.message})
            return
        else:
            async for event in _write_block(piece, number, index):
                yield event
            index += 1
    yield _event(
        "message_delta",
        delta={"stop_reason": turn.stop_reason, "stop_sequence": None},
        usage={"output_tokens": OUTPUT_TOKENS},
    )
    yield _event("message_stop")


def count_tokens(request: ModelRequest) -> int:
    """A plausible number: four bytes of JSON to a token."""
    return len(msgspec.json.encode(request.body)) // 4


async def _wait(piece: Piece) -> None:
    match piece:
        case Pause():
            await asyncio.sleep(piece.seconds)
        case Hold():
            await piece.pass_through()
        case Drop():
            raise ConnectionDropped


async def _write_block(piece: Piece, number: int, index: int) -> AsyncIterator[bytes]:
    yield _event("content_block_start", index=index, content_block=_opening(piece, number, index))
    for delta in _deltas(piece):
        yield _event("content_block_delta", index=index, delta=delta)
        if isinstance(piece, Text) and piece.delay:
            await asyncio.sleep(piece.delay)
    yield _event("content_block_stop", index=index)


def _deltas(piece: Piece) -> Iterator[dict[str, str]]:
    match piece:
        case Text():
            for at in range(0, len(piece.text), piece.chunk):
                yield {"type": "text_delta", "text": piece.text[at : at + piece.chunk]}
        case Thinking():
            yield {"type": "thinking_delta", "thinking": piece.text}
            yield {"type": "signature_delta", "signature": piece.signature}
        case ToolUse():
            whole = msgspec.json.encode(piece.input).decode()
            half = len(whole) // 2
            yield {"type": "input_json_delta", "partial_json": whole[:half]}
            yield {"type": "input_json_delta", "partial_json": whole[half:]}


def _opening(piece: Piece, number: int, index: int) -> dict[str, Any]:
    """The block as it is before its deltas."""
    empty = {"text": "", "thinking": "", "signature": "", "input": {}}
    whole = _block(piece, number, index)
    if isinstance(piece, RawBlock):
        return whole
    return {key: empty.get(key, value) for key, value in whole.items()}


def _block(piece: Piece, number: int, index: int) -> dict[str, Any]:
    match piece:
        case Text():
            return {"type": "text", "text": piece.text}
        case Thinking():
            return {"type": "thinking", "thinking": piece.text, "signature": piece.signature}
        case ToolUse():
            id_ = piece.id or f"toolu_scripted_{number:04d}_{index}"
            return {"type": "tool_use", "id": id_, "name": piece.name, "input": piece.input}
        case RawBlock():
            return piece.block
        case _:
            raise AssertionError(f"{piece!r} is not content")


def _content(turn: Turn) -> list[tuple[int, Piece]]:
    said = [p for p in turn.pieces if not isinstance(p, Pause | Hold | Drop | Fail)]
    return list(enumerate(said))


def _shell(request: ModelRequest, number: int) -> dict[str, Any]:
    return {
        "id": f"msg_scripted_{number:04d}",
        "type": "message",
        "role": "assistant",
        "model": request.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": _usage(1),
    }


def _usage(output: int) -> dict[str, Any]:
    return {
        "input_tokens": INPUT_TOKENS,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": output,
        "service_tier": "standard",
    }


def _event(kind: str, **members: Any) -> bytes:
    data = msgspec.json.encode({"type": kind, **members})
    return b"event: " + kind.encode() + b"\ndata: " + data + b"\n\n"
