"""A conversation as a tree: its messages, each with the one before it, and the forks of it."""

from __future__ import annotations

from ..views import happenings as h
from .arguments import Tree
from .calls import NOTICE, Call, Json, head

#: So much of each message is shown.
SUMMARY = 300


async def tree(call: Call, arguments: Tree) -> Json:
    record, fold = await call.looked(call.named(arguments).id)
    total = fold.tail.count
    start = arguments.from_seq
    if start is None:
        start = max(total - arguments.limit, 0)
    page = await fold.read(start, arguments.limit, "normal")
    before = await fold.head_before(start) if page.found else None
    ours = [one for one in call.all_below() if one.forked_from == record.id]
    return {
        "type": "ok",
        "session_id": record.id,
        "head": head(fold.tail.place),
        "nodes": _nodes(page.found, start, before),
        "forks": [{"session_id": one.id, "name": one.name} for one in ours],
        "forked_from": record.forked_from,
        "next_seq": page.end,
        "has_more": page.end < total,
        "notice": NOTICE,
    }


def _nodes(found: list[h.Happening], start: int, before: str | None) -> list[Json]:
    """One for each message of the main conversation, in order."""
    nodes: dict[str, Json] = {}
    parent = before
    for number, happening in enumerate(found, start):
        node = happening.node_id
        if node is None or happening.subagent is not None:
            continue
        if node not in nodes:
            # The first part of a message may be on the page before this one.
            above = None if node == parent else parent
            nodes[node] = {
                "node_id": node,
                "parent_id": above,
                "role": _role(happening),
                "summary": "",
                "seq": number,
                "at": happening.at,
            }
            parent = node
        one = nodes[node]
        one["summary"] = f"{one['summary']} {_summary(happening)}".strip()[:SUMMARY]
    return list(nodes.values())


def _role(happening: h.Happening) -> str:
    return "user" if isinstance(happening, h.Start | h.ToolResult) else "assistant"


def _summary(happening: h.Happening) -> str:
    match happening:
        case h.Start(prompt=text) | h.Content(text=text) | h.ToolResult(output=text):
            return text[:SUMMARY]
        case h.ToolUse(tool_name=name):
            return f"[{name}]"
        case h.Thinking():
            return "[thinking]"
        case h.Error(message=text):
            return f"[error] {text}"
        case _:
            return ""
