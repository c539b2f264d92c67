"""The nodes of a conversation: one for each message, with what came before it."""

from __future__ import annotations

from typing import Any

from bridle.loopback.tree import SUMMARY, _nodes
from bridle.views import happenings as h


def happenings() -> list[h.Happening]:
    kinds: list[tuple[type[Any], str | None, dict[str, Any]]] = [
        (h.Start, "n1", {"id": "p", "user_position": h.Place("s", None), "prompt": "go"}),
        (h.Thinking, "n2", {"text": "hm"}),
        (h.Content, "n2", {"text": "I will"}),
        (h.ToolUse, "n2", {"tool_use_id": "t", "tool_name": "Bash", "input": {}}),
        (h.ToolResult, "n3", {"tool_use_id": "t", "output": "done"}),
        (h.Content, "n4", {"text": "of a subagent", "subagent": "t"}),
        (h.Complete, None, {"outcome": "complete"}),
        (h.Error, "n5", {"source": "api", "message": "too much"}),
        (h.Other, "n5", {"what": "image"}),
        (h.Content, "n6", {"text": "x" * (SUMMARY + 1)}),
    ]
    return [kind(at=float(n), node_id=node, **facts) if node else kind(at=float(n), **facts)
            for n, (kind, node, facts) in enumerate(kinds)]  # fmt: skip


def test_each_message_is_a_node_below_the_one_before() -> None:
    nodes = _nodes(happenings(), 7, None)
    assert [(n["node_id"], n["parent_id"], n["role"], n["seq"], n["at"]) for n in nodes] == [
        ("n1", None, "user", 7, 0.0),
        ("n2", "n1", "assistant", 8, 1.0),
        ("n3", "n2", "user", 11, 4.0),
        ("n5", "n3", "assistant", 14, 7.0),
        ("n6", "n5", "assistant", 16, 9.0),
    ]
    assert [node["summary"] for node in nodes] == [
        *("go", "[thinking] I will [Bash]", "done", "[error] too much", "x" * SUMMARY),
    ]


def test_a_page_may_begin_in_the_middle_of_a_message() -> None:
    rest = happenings()[2:5]
    assert [(n["node_id"], n["parent_id"]) for n in _nodes(rest, 9, "n2")] == [
        ("n2", None),
        ("n3", "n2"),
    ]
    assert [(n["node_id"], n["parent_id"]) for n in _nodes(rest, 9, "n1")] == [
        ("n2", "n1"),
        ("n3", "n2"),
    ]
    assert _nodes([], 9, "n1") == []
