"""What each tool does and gives, beside poll: telling, deciding, forking, looking, ending."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import msgspec
import pytest

from bridle.approvals import Agent, Approve, ForSession
from bridle.loopback import METHODS, SERVER, loopback_of, tools_of
from bridle.loopback.calls import NOTICE
from bridle.protocol.outbound import WithMentions
from bridle.session.tools import ToolServers
from bridle.supervisor.kept_policies import BUCKET, KeptPolicy
from bridle.supervisor.making import gate_of
from bridle.views import stream
from tests.policy.grounds import bash, told
from tests.supervisor.homes import (
    ASKS,
    DONE,
    INIT,
    ME,
    PROMPT,
    TURN,
    WORKS,
    Home,
    bodies,
    first_of,
    until,
)

from .parents import LIMIT, Json, Parent, branching, opened, parent_with

QUESTION = {
    "questions": [{"question": "Which?", "header": "H", "options": [], "multiSelect": False}]
}
ASKS_WHICH = (
    *(PROMPT, INIT),
    {"ask": {"tool_name": "AskUserQuestion", "input": QUESTION, "tool_use_id": "t1"}, "id": "q1"},
    DONE,
)


# --- what they are called, and how they are listed


def test_every_tool_is_listed_with_words_and_types_that_say_what_to_give() -> None:
    assert len(METHODS) == 15
    for name, method in METHODS.items():
        entry = method.listed()
        assert entry["name"] == name == method.dotted.replace(".", "_", 1)
        assert method.dotted.split(".")[0] in ("claudecode", "loopback")
        assert len(entry["description"]) > 40
        schema = entry["inputSchema"]
        assert schema["type"] == "object"
        assert schema["additionalProperties"] is False
        for argument, about in schema["properties"].items():
            assert _description(about, schema), (name, argument)


def _description(about: Json, schema: Json) -> str:
    if "description" in about:
        return str(about["description"])
    for one in about.get("anyOf", [about]):
        if "$ref" in one:
            found = schema["$defs"][one["$ref"].rpartition("/")[2]]
            return str(found.get("description", ""))
        if "description" in one:
            return str(one["description"])
    return ""


async def test_tools_are_for_sessions_that_are_to_run_others_alone(home: Home) -> None:
    async with opened(home) as supervisor:
        tools = tools_of(supervisor)
        plain = await home.start(supervisor, *WORKS, name="plain")
        assert tools(plain, "l") == {}
        parent = supervisor.get((await parent_with(home, supervisor, *WORKS)).id)
        servers = ToolServers(tools(parent, "l"))
        listed = await servers.handle(SERVER, {"id": 1, "method": "tools/list"})
        assert [one["name"] for one in listed["result"]["tools"]] == list(METHODS)
        for name in METHODS:
            call = {"method": "tools/call", "params": {"name": name}}
            assert servers.is_repeatable(SERVER, call)


async def test_a_session_as_deep_as_may_be_has_no_tools(home: Home) -> None:
    async with opened(home) as supervisor:
        one = await parent_with(home, supervisor, *WORKS)
        depths = []
        for depth in range(3):
            child = supervisor.get(await one.child(f"d{depth}", prompt=None))
            await until(supervisor, child.id, "idle")
            one = Parent(one.loopback, child)
            depths.append(bool(tools_of(supervisor)(child, "l")))
        assert depths == [True, True, False]
        assert await one.refused("claudecode_create", name="d4") in (
            "not_possible",
            "limit_reached",
        )


# --- creating


async def test_a_child_is_what_its_parent_wants_within_what_it_is_itself(home: Home) -> None:
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, *TURN)
        (home.work / "part").mkdir()
        made = await parent.ok(
            "claudecode_create", name="child", working_dir="part", model="opus", policy="read-only",
            system_prompt="be good", loopback_enabled=False, allowed_tools=["Bash(ls:*)"],
            disallowed_tools=["WebFetch"], permission_mode="default", limits={"turns": 3},
        )  # fmt: skip
        child = supervisor.get(made["id"])
        assert child.folder == str(home.work / "part")
        assert child.limits.turns == 3
        assert not child.asks_above
        assert child.spec["model"] == "opus"
        assert child.spec["system_prompt"] == "be good"
        got = await parent.ok("claudecode_get", session_id=child.id)
        assert got["limits"] == {"turns": 3}
        assert got["working_dir"] == child.folder
        assert not got["loopback_enabled"]
        seen = await first_of(supervisor, parent.id, stream.CHILD_CREATED)
        assert [one.session for one in seen] == [child.id]


async def test_a_child_may_be_under_a_policy_that_a_person_keeps(home: Home) -> None:
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, *TURN, policy="edits")
        kept = supervisor.journal.bucket(BUCKET, KeptPolicy)
        for name, preset in (("mine", "edits"), ("wide", "autonomous")):
            text = f'preset = "{preset}"\ndeny = ["Bash(rm:*)"]'
            await kept.put(name, KeptPolicy(text=text, by=ME, at=0), 0)
        made = await parent.ok("claudecode_create", name="child", policy="mine")
        record = supervisor.get(made["id"])
        gate, _ = await gate_of(supervisor._means, record, "a launch")
        assert told(gate.policy.judge(bash("rm x"))) == "deny"
        assert gate.policy.policy.preset == "edits"
        given = await parent.call("claudecode_create", None, name="other", policy="wide")
        assert given["code"] == "wider_than_parent"
        given = await parent.call("claudecode_create", None, name="other", policy="none")
        assert "a policy that a person has stored" in given["message"]


#: What each tool must be given.
REQUIRED: dict[str, dict[str, Any]] = {
    "claudecode_create": {"name": "a"},
    "claudecode_chat_async": {"prompt": "a"},
    "claudecode_chat": {"prompt": "a"},
    "claudecode_fork": {"new_name": "a"},
    "loopback_respond": {"approval_id": "a", "approve": True},
    "loopback_escalate": {"approval_id": "a", "why": "b"},
}


@pytest.mark.parametrize("name", METHODS)
def test_nothing_in_place_of_an_argument_is_as_if_it_was_left_out(name: str) -> None:
    method, required = METHODS[name], REQUIRED.get(name, {})
    optional = [one.encode_name for one in msgspec.structs.fields(method.arguments)]
    nothing = dict.fromkeys(one for one in optional if one not in required)
    assert method.read({**required, **nothing}) == method.read(required)
    for one in required:
        with pytest.raises(msgspec.ValidationError, match=one):
            method.read({**required, one: None})


WIDER = [
    {"working_dir": "/"},
    {"working_dir": ".."},
    {"policy": "autonomous"},
    {"permission_mode": "bypassPermissions"},
]


async def test_what_is_wider_than_the_parent_is_refused(home: Home) -> None:
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, *TURN, policy="ask")
        for wider in WIDER:
            given = await parent.call("claudecode_create", None, name="child", **wider)
            assert given["code"] == "wider_than_parent"
            assert len(supervisor.list()) == 1


async def test_a_limit_that_is_beyond_all_counting_is_a_mistake(home: Home) -> None:
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, *TURN)
        for limits in ({"cost_usd": 1e308}, {"tokens": 10**30}, {"turns": 0}):
            given = await parent.call("claudecode_create", None, name="a", limits=limits)
            assert given["code"] == "invalid_arguments", limits


async def test_a_child_that_may_have_no_children_can_make_none(home: Home) -> None:
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, *TURN)
        record = supervisor.get(await parent.child(prompt=None, limits={"concurrency": 0}))
        await until(supervisor, record.id, "idle")
        assert record.loopback
        child = Parent(parent.loopback, record)
        given = await child.call("claudecode_create", None, name="grandchild")
        assert given["code"] == "budget_too_small"
        assert f"session {record.id} has room for 0 " in given["message"]
        assert len(supervisor.list()) == 2


@pytest.mark.slow
async def test_limits_on_how_many_are_told_in_words(home: Home) -> None:
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, *WORKS, limits=None)
        for number in range(8):
            await parent.child(f"c{number}", prompt=None)
        given = await parent.call("claudecode_create", None, name="c9")
        assert given["code"] == "limit_reached"
        assert "stop one" in given["message"]


# --- telling


async def test_several_chats_keep_one_conversation(home: Home) -> None:
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, *TURN, *TURN)
        child = await parent.child()
        await parent.poll(child, until="turn_end")
        before = supervisor.get(child).launch
        await parent.ok("claudecode_chat_async", name="child", prompt="more")
        after = await parent.poll(child, until="turn_end")
        assert after["status"] == "complete"
        assert supervisor.get(child).launch == before or supervisor.get(child).launches == 1


async def test_a_session_that_has_ended_goes_on_when_it_is_told_something(home: Home) -> None:
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, *TURN)
        child = await parent.child()
        await parent.poll(child, until="turn_end")
        await parent.ok("claudecode_stop", session_id=child)
        assert (await parent.poll(child, until="turn_end"))["state"] == "stopped"
        started = await parent.ok("claudecode_chat_async", session_id=child, prompt="more")
        given = await parent.poll(child, until="turn_end", cursor=started["cursor"])
        assert given["status"] == "complete"
        record = supervisor.get(child)
        assert record.launches == 2
        assert record.launch
        assert record.launch.resume


async def test_whom_a_person_has_stopped_only_a_person_starts_again(home: Home) -> None:
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, *TURN)
        child = await parent.child()
        await parent.poll(child, until="turn_end")
        await supervisor.stop(child, by="me")
        told = await parent.call("claudecode_chat_async", session_id=child, prompt="go on")
        assert told["code"] == "stopped_by_person"
        assert supervisor.get(child).state == "stopped"
        await supervisor.resume(child)
        await parent.ok("claudecode_chat_async", session_id=child, prompt="go on")


async def test_who_is_paused_at_a_limit_is_told_nothing_unless_that_may_wait(home: Home) -> None:
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, *TURN)
        made = await parent.ok("claudecode_create", name="child", limits={"turns": 1})
        child = made["id"]
        await parent.ok("claudecode_chat_async", name="child", prompt="go")
        await until(supervisor, child, "paused")
        told = await parent.call("claudecode_chat_async", name="child", prompt="go on")
        assert told["code"] == "not_possible"
        assert "a limit of its own" in told["message"]
        assert not supervisor.get(child).waiting
        await parent.ok("claudecode_chat_async", name="child", prompt="go on", on_busy="queue")
        assert len(supervisor.get(child).waiting) == 1


async def test_arguments_that_do_not_fit_are_told_with_what_would(home: Home) -> None:
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, *TURN)

        async def said(**arguments: Any) -> str:
            given = await parent.call("claudecode_create", None, **arguments)
            assert given["code"] == "invalid_arguments"
            return str(given["message"])

        assert "'acceptEdits'" in await said(name="c", permission_mode="yolo")
        assert "there is name, working_dir," in await said(name="c", workdir=".")
        assert "there is turns, cost_usd," in await said(name="c", limits={"max_cost": 5})
        assert "`name`" in await said()
        nobody = await parent.call("claudecode_get", None)
        assert "which session?" in nobody["message"]


async def test_who_is_busy_is_told_as_one_chooses(home: Home) -> None:
    ended = {"result": {"subtype": "error_during_execution", "is_error": False}}
    works = [INIT, {"await_request": "interrupt"}, ended]
    command = branching(home, {"long": works, "short": [INIT, DONE]}, replies={"interrupt": {}})
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, command=command)
        child = await parent.child(prompt="long")
        assert await parent.refused("claudecode_chat_async", session_id=child, prompt="short") == (
            "busy"
        )
        await supervisor.wait(child, lambda record: record.state == "running", LIMIT)
        queued = await parent.ok(
            "claudecode_chat_async", session_id=child, prompt="short", on_busy="queue"
        )
        now = await parent.ok(
            "claudecode_chat_async", session_id=child, prompt="short", on_busy="interrupt"
        )
        await supervisor.wait(child, lambda record: record.turns == 3, LIMIT)
        told = await bodies(supervisor, child, stream.PROMPTED)
        assert [one.uuid for one in told][1:] == [queued["turn_id"], now["turn_id"]]


async def test_chat_waits_for_the_end_but_never_for_one_who_may_ask_the_caller(home: Home) -> None:
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, *TURN)
        asking = await parent.child("asking", prompt=None)
        given = await parent.call("claudecode_chat", None, session_id=asking, prompt="go")
        assert given["code"] == "would_deadlock"
        assert "claudecode_chat_async" in given["message"]
        assert supervisor.get(asking).turns == 0
        quiet = await parent.child("quiet", prompt=None, loopback_enabled=False)
        done = await parent.ok("claudecode_chat", session_id=quiet, prompt="go")
        assert done["result"] == "done"
        assert done["status"] == "complete"


async def test_a_chat_ends_when_its_session_does(home: Home) -> None:
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, *WORKS)
        child = await parent.child(prompt=None, loopback_enabled=False)
        chat = asyncio.ensure_future(parent.call("claudecode_chat", session_id=child, prompt="go"))
        await supervisor.wait(child, lambda record: record.state == "running", LIMIT)
        await supervisor.stop(child)
        assert (await chat)["status"] == "cancelled"


# --- deciding


async def asking(home: Home, supervisor: Any, *steps: Json, **options: Any) -> tuple[Parent, Json]:
    parent = await parent_with(home, supervisor, *(steps or ASKS), **options)
    child = await parent.child()
    seen = await parent.poll(child, until="approval")
    assert seen["notice"] == NOTICE
    [approval] = seen["pending_approvals"]
    return parent, approval


async def test_a_no_reaches_the_child_with_its_words(home: Home) -> None:
    async with opened(home) as supervisor:
        parent, approval = await asking(home, supervisor)
        await parent.ok(
            "loopback_respond", approval_id=approval["id"], approve=False, message="never"
        )
        given = await parent.poll(approval["session_id"], until="turn_end")
        [resolved] = [
            e["event"] for e in given["events"] if e["event"]["type"].endswith("resolved")
        ]
        assert (resolved["status"], resolved["message"]) == ("denied", "never")
        assert resolved["by"] == parent.id
        [result] = [e["event"] for e in given["events"] if e["event"]["type"] == "tool_result"]
        assert result["is_error"]
        assert "never" in result["output"]


async def test_a_changed_input_is_what_runs(home: Home) -> None:
    async with opened(home) as supervisor:
        parent, approval = await asking(home, supervisor)
        changed = {"command": "ls"}
        await parent.ok(
            "loopback_respond", approval_id=approval["id"], approve=True, updated_input=changed
        )
        given = await parent.poll(approval["session_id"], until="turn_end")
        [result] = [e["event"] for e in given["events"] if e["event"]["type"] == "tool_result"]
        assert msgspec.json.decode(result["output"]) == changed


async def test_what_is_remembered_is_the_childs_alone(home: Home) -> None:
    async with opened(home) as supervisor:
        parent, approval = await asking(home, supervisor)
        await parent.ok(
            "loopback_respond", approval_id=approval["id"], approve=True, remember="Bash(rm:*)"
        )
        found = (await supervisor.approvals.get(approval["id"])).decision
        assert found
        assert found.by == Agent(parent.id)
        assert found.choice == Approve(remember=ForSession("Bash(rm:*)"))


async def test_a_question_is_answered(home: Home) -> None:
    async with opened(home) as supervisor:
        parent, approval = await asking(home, supervisor, *ASKS_WHICH)
        assert approval["kind"] == "question"
        code = await parent.refused("loopback_respond", approval_id=approval["id"], approve=True)
        assert code == "invalid_arguments"
        wrong = {"approval_id": approval["id"], "approve": True}
        unfit: list[Json] = [
            {"updated_input": {}}, {"remember": "Bash"}, {"answers": {"Who?": "me"}}
        ]  # fmt: skip
        for more in unfit:
            code = await parent.refused("loopback_respond", **wrong, **more)
            assert code in ("invalid_arguments", "invalid_decision")
        await parent.ok(
            "loopback_respond", approval_id=approval["id"], approve=True, answers={"Which?": "this"}
        )
        given = await parent.poll(approval["session_id"], until="turn_end")
        assert given["status"] == "complete"


async def test_what_a_parent_may_not_grant_is_never_put_to_it(home: Home) -> None:
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, *ASKS, policy="ask")
        child = await parent.child()
        await supervisor.wait(child, lambda record: bool(record.approvals), LIMIT)
        seen = await parent.poll(child, until="approval", wait_ms=50)
        assert seen["waiting_for_others"]
        assert seen["pending_approvals"] == []


async def test_what_is_passed_on_goes_to_people_with_the_words(home: Home) -> None:
    async with opened(home) as supervisor:
        parent, approval = await asking(home, supervisor)
        for _ in range(2):
            given = await parent.ok("loopback_escalate", approval_id=approval["id"], why="unsure")
            assert given["put_to"] == "people"
        found = await supervisor.approvals.get(approval["id"])
        assert (found.steps[-1].why, found.steps[-1].by) == ("unsure", parent.id)
        seen = await parent.poll(approval["session_id"], until="approval", wait_ms=50)
        assert [one["is_yours_now"] for one in seen["pending_approvals"]] == [False]
        assert seen["waiting_for_others"]
        await supervisor.approvals.decide(approval["id"], Approve(), by=ME)
        after = await parent.poll(approval["session_id"], until="turn_end")
        assert after["status"] == "complete"


async def test_all_that_is_asked_below_is_seen_at_once(home: Home) -> None:
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, *ASKS)
        children = {await parent.child(f"c{number}") for number in range(3)}
        for child in children:
            await parent.poll(child, until="approval")
        pending = await parent.ok("loopback_pending")
        assert {one["session_id"] for one in pending["pending_approvals"]} == children
        assert pending["notice"] == NOTICE
        one = await parent.ok("loopback_pending", name="c1")
        assert [one["session_name"] for one in one["pending_approvals"]] == ["c1"]


async def test_a_grandchild_whose_question_its_parent_may_not_grant_asks_the_root(
    home: Home,
) -> None:
    async with opened(home) as supervisor:
        root = await parent_with(home, supervisor, *ASKS)
        middle = Parent(root.loopback, supervisor.get(await root.child("middle", prompt=None)))
        await until(supervisor, middle.id, "idle")
        low = await middle.child("low")
        seen = await root.poll(low, until="approval")
        [approval] = seen["pending_approvals"]
        assert (
            await middle.refused("loopback_respond", approval_id=approval["id"], approve=True)
            == "not_found"
        )
        await root.ok("loopback_respond", approval_id=approval["id"], approve=True)
        assert (await middle.poll(low, until="turn_end"))["status"] == "complete"


async def test_human_only_goes_past_the_parent(home: Home) -> None:
    policy = home.work.parent / "policy.toml"
    policy.write_text('preset = "autonomous"\nhuman_only = ["Bash(rm:*)"]\n')
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, *ASKS, policy=policy)
        child = await parent.child()
        await supervisor.wait(child, lambda record: bool(record.approvals), LIMIT)
        seen = await parent.poll(child, until="approval", wait_ms=50)
        assert (seen["pending_approvals"], seen["waiting_for_others"]) == ([], True)


# --- looking


async def test_a_result_is_that_of_the_latest_turn(home: Home) -> None:
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, *TURN, *TURN[:-1], {"result": "second"})
        child = await parent.child(prompt=None)
        none = await parent.ok("claudecode_result", session_id=child)
        assert none["result"] is None
        for expected in ("done", "second"):
            await parent.ok("claudecode_chat_async", session_id=child, prompt="go")
            await parent.poll(child, until="turn_end")
            given = await parent.ok("claudecode_result", session_id=child)
            assert given["result"] == expected
            assert given["turn"]["outcome"] == "complete"
            assert given["notice"] == NOTICE


async def test_a_conversation_is_a_tree_and_can_be_forked_at_a_node(home: Home) -> None:
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, *TURN, *TURN)
        child = await parent.child()
        await parent.poll(child, until="turn_end")
        tree = await parent.ok("claudecode_tree", session_id=child)
        nodes = tree["nodes"]
        assert [node["role"] for node in nodes] == ["user", "assistant"]
        assert nodes[0]["parent_id"] is None
        assert nodes[1]["parent_id"] == nodes[0]["node_id"]
        assert nodes[1]["summary"] == "hello"
        record = supervisor.get(child)
        assert tree["head"] == {
            "tree_id": record.claude_session_id, "node_id": nodes[-1]["node_id"]
        }  # fmt: skip
        fork_it: Json = {"session_id": child, "new_name": "fork", "prompt": "go"}
        fork_it["node_id"] = nodes[1]["node_id"]
        made = await parent.ok("claudecode_fork", "f", **fork_it)
        assert (await parent.ok("claudecode_fork", "f", **fork_it))["id"] == made["id"]
        fork = supervisor.get(made["id"])
        assert (fork.forked_from, fork.lineage) == (child, (parent.id,))
        assert len(supervisor.list()) == 3
        again = await parent.ok("claudecode_tree", session_id=child)
        assert again["forks"] == [{"session_id": fork.id, "name": "fork"}]
        assert (await parent.poll(fork.id, until="turn_end"))["status"] == "complete"


async def test_pages_of_a_tree_know_what_came_before(home: Home) -> None:
    async with opened(home) as supervisor:
        steps = [PROMPT, INIT, *({"say": f"{n}"} for n in range(20)), DONE]
        parent = await parent_with(home, supervisor, *steps)
        child = await parent.child()
        await parent.poll(child, until="turn_end")
        await supervisor.wait(child, lambda record: record.published == "idle", LIMIT)
        whole = (await parent.ok("claudecode_tree", session_id=child))["nodes"]
        found: list[Json] = []
        given: Json = {"next_seq": 0, "has_more": True}
        while given["has_more"]:
            given = await parent.ok(
                "claudecode_tree", session_id=child, from_seq=given["next_seq"], limit=3
            )
            found += given["nodes"]
        assert found == whole
        assert len(found) == 21


def test_what_only_looks_says_so_and_what_changes_something_does_not() -> None:
    looks = {name for name, method in METHODS.items() if method.read_only}
    assert looks == {
        *("claudecode_poll", "claudecode_result", "claudecode_get", "claudecode_list"),
        *("claudecode_tree", "loopback_pending"),
    }
    for name, method in METHODS.items():
        assert method.listed().get("annotations") == (
            {"readOnlyHint": True} if name in looks else None
        )


async def test_those_below_are_listed_newest_first_and_as_many_as_are_wanted(home: Home) -> None:
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, *TURN)
        for name in ("a", "b", "c"):
            await parent.child(name, prompt=None)
        await parent.ok("claudecode_stop", name="b")

        async def listed(**wanted: Any) -> tuple[list[str], int, bool]:
            given = await parent.ok("claudecode_list", **wanted)
            return [one["name"] for one in given["sessions"]], given["total"], given["has_more"]

        assert await listed() == (["c", "b", "a"], 3, False)
        assert await listed(live_only=True) == (["c", "a"], 2, False)
        assert await listed(limit=2) == (["c", "b"], 3, True)
        assert await listed(limit=2, live_only=True) == (["c", "a"], 2, False)


async def test_who_is_stopped_interrupted_or_deleted_says_so(home: Home) -> None:
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, *TURN)
        child = await parent.child()
        await parent.poll(child, until="turn_end")
        idle = await parent.ok("claudecode_interrupt", session_id=child)
        assert not idle["was_running"]
        given = await parent.call("claudecode_delete", None, session_id=child)
        assert given["code"] == "not_possible"
        assert "stop it first" in given["message"]
        for _ in range(2):
            stopped = await parent.ok("claudecode_stop", session_id=child, why="enough")
            assert (stopped["state"], stopped["status"]) == ("stopped", "complete")
        [asked] = await bodies(supervisor, child, stream.STOP_ASKED)
        assert (asked.words, asked.by) == ("enough", f"agent {parent.id}")
        await parent.ok("claudecode_delete", session_id=child)
        assert (await parent.ok("claudecode_list"))["sessions"] == []
        assert loopback_of(supervisor) is parent.loopback


async def test_no_file_is_read_for_an_agent_by_a_mention_in_a_prompt_to_another(home: Home) -> None:
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, *TURN * 3)
        child = await parent.child(prompt="look at @/secret/key")
        await supervisor.wait(child, lambda record: record.turns == 1, LIMIT)
        await parent.ok("claudecode_chat_async", session_id=child, prompt="and @~/other")
        await supervisor.wait(child, lambda record: record.turns == 2, LIMIT)
        forked = await parent.ok(
            "claudecode_fork", session_id=child, new_name="forked", prompt="@third"
        )
        lines = [
            bytes(body.line)
            for session in (child, forked["id"])
            for body in await bodies(supervisor, session, stream.PROMPTED)
        ]
        assert len(lines) == 3
        for line in lines:
            assert b'"client_composed":true' in line
            assert re.search(rb"(?<!\\\\)@", line) is None, line
        uuid = await supervisor.send(child, WithMentions("see @/mine"), by="ada")
        told = await bodies(supervisor, child, stream.PROMPTED)
        assert [b'"see @/mine"' in bytes(one.line) for one in told if one.uuid == uuid] == [True]
