"""The files that an agent's tools touched: which, how often, with how many lines. Pure.

Owns the fold over calls of file tools. A call counts when its result has come without an error, so
neither one that was denied nor one that failed. What commands do to files is not known here.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..protocol.blocks import ToolUseBlock
from ..protocol.codec import DECODE_ERRORS
from ..protocol.content import tool_results
from ..protocol.messages import Assistant, User
from . import stream
from .reading import Reading, reading_of
from .step import forget_oldest

#: The tools that change files, and where their input names the file.
CHANGING = {
    "Write": "file_path",
    "Edit": "file_path",
    "MultiEdit": "file_path",
    "NotebookEdit": "notebook_path",
}
READING = {"Read": "file_path", "NotebookRead": "notebook_path"}

#: So much is listed that the state fits into a record (256 KB): some 700 files. Beyond it, files
#: that were only read go first, the oldest of them; calls on what is not listed are only counted.
MAX_BYTES = 200 * 1024
MAX_OPEN = 100
MAX_PATH = 1_024

Origin: TypeAlias = Literal["created", "there", "unknown"]


class FileUse(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`tools` has how often each tool touched it. `origin`: whether the agent made it; told by the
    first call that changed it. Lines are those of calls whose CLI told a patch."""

    path: str
    first: int
    last: int
    changes: int = 0
    reads: int = 0
    tools: dict[str, int] = {}
    origin: Origin = "unknown"
    added: int = 0
    removed: int = 0


class _Call(Struct, frozen=True):
    tool: str
    path: str


class FilesState(Struct, kw_only=True, omit_defaults=True):
    """By path, in the order in which they were first touched: `changed`, and those only `read`.
    It grows with the files, not with the events, and not without end."""

    #: The last event that is in it.
    seq: int = 0
    changed: dict[str, FileUse] = {}
    read: dict[str, FileUse] = {}
    weight: int = 0
    #: Calls on files that are not listed, or no longer.
    more: int = 0
    open: dict[str, _Call] = {}


class _Patch(Struct):
    lines: list[str] = []


class _Done(Struct, rename="camel"):
    """What the CLI tells of a change beside the words for the model."""

    file_path: str = ""
    notebook_path: str = ""
    type: str = ""
    content: Any = None
    original_file: str | None = None
    structured_patch: list[_Patch] = []


_DONE = msgspec.json.Decoder(_Done)


def fold(state: FilesState, event: stream.Entry | Reading) -> list[FileUse]:
    """Take in one event, in place; the files that it touched."""
    if event.seq <= state.seq:
        return []
    reading = reading_of(event)
    state.seq = reading.seq
    match reading.said:
        case Assistant() as message:
            for block in message.message.content:
                if isinstance(block, ToolUseBlock):
                    _begin(state, block)
        case User() as message:
            return _results(state, message, reading.seq)
    return []


def _begin(state: FilesState, block: ToolUseBlock) -> None:
    field = CHANGING.get(block.name) or READING.get(block.name)
    path = block.input.get(field) if field else None
    if isinstance(path, str) and path:
        state.open[block.id] = _Call(block.name, path[:MAX_PATH])
        forget_oldest(state.open, MAX_OPEN)


def _results(state: FilesState, message: User, seq: int) -> list[FileUse]:
    blocks = tool_results(message)
    touched = []
    for block in blocks:
        call = state.open.pop(block.tool_use_id, None)
        if call is None or block.is_error:
            continue
        # It is the message's, not the block's: with several blocks nothing tells whose it is.
        done = _done(bytes(message.tool_use_result)) if len(blocks) == 1 else _Done()
        use = _touch(state, call, done, seq)
        touched += [use] if use else []
    return touched


def _done(raw: bytes) -> _Done:
    try:
        return _DONE.decode(raw) if raw.startswith(b"{") else _Done()
    except DECODE_ERRORS:
        return _Done()


def _touch(state: FilesState, call: _Call, done: _Done, seq: int) -> FileUse | None:
    # An approver may have changed the input: the result knows where it really went.
    path = (done.file_path or done.notebook_path or call.path)[:MAX_PATH]
    known = state.changed.get(path) or state.read.get(path)
    if known is None and not _has_room(state, path, is_read=call.tool in READING):
        state.more += 1
        return None
    use = known or FileUse(path=path, first=seq, last=seq)
    tools = {**use.tools, call.tool: use.tools.get(call.tool, 0) + 1}
    if call.tool in READING:
        use = replace(use, last=seq, reads=use.reads + 1, tools=tools)
    else:
        added, removed = _lines(done)
        use = replace(
            use,
            last=seq,
            changes=use.changes + 1,
            tools=tools,
            origin=use.origin if use.changes else _origin(done),
            added=use.added + added,
            removed=use.removed + removed,
        )
        state.read.pop(path, None)
    (state.changed if use.changes else state.read)[path] = use
    return use


def _has_room(state: FilesState, path: str, *, is_read: bool) -> bool:
    """Make room for one more file; what was only read gives way."""
    weight = _weight(path)
    while state.weight + weight > MAX_BYTES and state.read and not is_read:
        gone = state.read.pop(next(iter(state.read)))
        state.weight -= _weight(gone.path)
        state.more += gone.reads
    if state.weight + weight > MAX_BYTES:
        return False
    state.weight += weight
    return True


def _weight(path: str) -> int:
    """About what a file takes in the encoded state, where its path stands twice."""
    return 2 * len(path.encode()) + 160


def _origin(done: _Done) -> Origin:
    if done.type == "create":
        return "created"
    is_told = done.type == "update" or done.original_file is not None
    return "there" if is_told else "unknown"


def _lines(done: _Done) -> tuple[int, int]:
    if done.type == "create" and isinstance(done.content, str) and not done.structured_patch:
        return len(done.content.splitlines()), 0
    lines = [line for patch in done.structured_patch for line in patch.lines]
    added = sum(line.startswith("+") for line in lines)
    return added, sum(line.startswith("-") for line in lines)
