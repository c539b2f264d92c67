"""A parent that creates a child through the tools, sees what it asks, answers, gets the result."""

from __future__ import annotations

from bridle.approvals import Agent
from tests.supervisor.homes import ASKS, DONE, INIT, PROMPT, Home

from .parents import answered, calls, opened, parent_with


async def test_a_parent_runs_a_child_from_its_creation_to_its_result(home: Home) -> None:
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, *ASKS)
        made = await parent.ok("claudecode_create", name="child", policy="ask")
        assert made["type"] == "created"
        child = made["id"]
        assert made["head"] == {"tree_id": child, "node_id": None}
        started = await parent.ok("claudecode_chat_async", name="child", prompt="go")
        assert started["session_id"] == child
        seen = await parent.poll(child, until="approval")
        assert seen["status"] == "awaiting_permission"
        [asked] = seen["pending_approvals"]
        assert asked["input"] == {"command": "rm x"}
        assert asked["is_yours_now"]
        given = await parent.ok("loopback_respond", approval_id=asked["id"], approve=True)
        assert given == {"type": "ok", "approval_id": asked["id"]}
        after = await parent.poll(child, until="turn_end")
        assert after["status"] == "complete"
        assert after["events"][0]["seq"] == seen["events"][-1]["seq"] + 1
        assert after["events"][-1]["event"]["type"] in ("complete", "status")
        assert after["read_position"] == after["total_events"]
        result = await parent.ok("claudecode_result", name="child")
        assert result["result"] == "done"
        approval = await supervisor.approvals.get(asked["id"])
        assert approval.decision
        assert approval.decision.by == Agent(parent.id)


async def test_a_fake_parent_cli_makes_its_calls_over_its_own_pipe(home: Home) -> None:
    steps = (
        PROMPT,
        INIT,
        calls("claudecode_create", {"name": "child"}, "c1"),
        calls("claudecode_list", {}, "c2"),
        calls("claudecode_poll", {"name": "parent", "wait_ms": 0}, "c3"),
        DONE,
    )
    async with opened(home) as supervisor:
        parent = await home.start(supervisor, *steps, name="parent", loopback=True)
        made = await answered(supervisor, parent.id, "c1")
        child = supervisor.get("child")
        assert made["id"] == child.id
        assert child.lineage == (parent.id,)
        listed = await answered(supervisor, parent.id, "c2")
        assert [one["name"] for one in listed["sessions"]] == ["child"]
        itself = await answered(supervisor, parent.id, "c3")
        assert itself["code"] == "not_found"
