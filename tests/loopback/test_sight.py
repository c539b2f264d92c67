"""Who sees whom: an agent those strictly below it, whatever it calls them, and nobody else."""

from __future__ import annotations

from typing import Any

from bridle.loopback import METHODS, loopback_of
from bridle.supervisor import Supervisor
from tests.supervisor.homes import ASKS, LIMIT, ME, WORKS, Home, asked, until

from .parents import Parent, opened, parent_with

#: What each tool needs beside the session.
MORE: dict[str, dict[str, Any]] = {
    "claudecode_chat": {"prompt": "hi"},
    "claudecode_chat_async": {"prompt": "hi"},
    "claudecode_fork": {"new_name": "stolen"},
}
WITH_SESSION = sorted(
    name for name, method in METHODS.items()
    if "session_id" in method.arguments.__struct_fields__ and name != "loopback_pending"
)  # fmt: skip


async def family(home: Home, supervisor: Supervisor) -> tuple[Parent, Parent, Parent, Parent]:
    """A root, a child and a grandchild below it, and another root."""
    root = await parent_with(home, supervisor, *WORKS, name="root")
    child = await root.child("child", prompt=None)
    await until(supervisor, child, "idle")
    middle = Parent(root.loopback, supervisor.get(child))
    low = Parent(root.loopback, supervisor.get(await middle.child("low", prompt=None)))
    other = await parent_with(home, supervisor, *WORKS, name="other")
    return root, middle, low, other


async def test_nobody_reaches_itself_or_those_above_and_beside_it(home: Home) -> None:
    async with opened(home) as supervisor:
        root, middle, low, other = await family(home, supervisor)
        sibling = await root.child("sibling", prompt=None)
        foreign = [root.id, "root", middle.id, "child", sibling, "sibling", other.id, "other"]
        unknown = ["nobody", "00000000-0000-4000-8000-000000000000", "..", "é", "x" * 200]
        for tool in WITH_SESSION:
            words = set()
            for wanted in (*foreign, *unknown):
                given = await middle.call(tool, None, session_id=wanted, **MORE.get(tool, {}))
                assert given["code"] == "not_found", (wanted, given)
                words.add(given["message"].replace(repr(wanted[:100]), "it"))
                by_name = await middle.call(tool, None, name=wanted, **MORE.get(tool, {}))
                assert by_name["code"] == "not_found"
            # What there is and what there is not can't be told apart.
            assert len(words) == 1
            assert (
                await low.refused(tool, session_id=middle.id, **MORE.get(tool, {})) == "not_found"
            )


async def test_a_list_has_those_below_alone(home: Home) -> None:
    async with opened(home) as supervisor:
        root, middle, low, other = await family(home, supervisor)
        seen = {}
        for one in (root, middle, low, other):
            listed = await one.ok("claudecode_list")
            seen[one.id] = {session["session_id"] for session in listed["sessions"]}
        assert seen == {root.id: {middle.id, low.id}, middle.id: {low.id}, low.id: set(),
                        other.id: set()}  # fmt: skip
        assert (await root.ok("claudecode_list", limit=1))["has_more"]


async def test_nobody_decides_for_itself_for_a_sibling_or_for_an_ancestor(home: Home) -> None:
    async with opened(home) as supervisor:
        root = await parent_with(home, supervisor, *ASKS, name="root")
        child = await root.child("child")
        approval = await asked(supervisor, child)
        sibling = await root.child("sibling", prompt=None)
        other = await parent_with(home, supervisor, *WORKS, name="other")
        loopback = loopback_of(supervisor)
        for record in (supervisor.get(child), supervisor.get(sibling), supervisor.get(other.id)):
            one = Parent(loopback, record)
            for approve in (True, False):
                code = await one.refused(
                    "loopback_respond", approval_id=approval.id, approve=approve
                )
                assert code == "not_found"
            assert await one.refused("loopback_escalate", approval_id=approval.id, why="x") == (
                "not_found"
            )
            assert await one.refused("loopback_pending", approval_id=approval.id) == "not_found"
        assert (await supervisor.approvals.get(approval.id)).status == "pending"


async def test_a_name_that_is_the_id_of_another_can_not_be_taken(home: Home) -> None:
    async with opened(home) as supervisor:
        root, middle, _, other = await family(home, supervisor)
        for name in (other.id, "other", middle.id, root.id, "root"):
            given = await root.call("claudecode_create", None, name=name)
            is_id = name in (other.id, middle.id, root.id)
            assert given["code"] == ("invalid_arguments" if is_id else "name_taken")
            assert other.id not in given["message"].replace(name, "")


async def test_a_caller_that_is_not_there_is_refused(home: Home) -> None:
    async with opened(home) as supervisor:
        loopback = loopback_of(supervisor)
        record = (await parent_with(home, supervisor, *WORKS)).id
        for caller in ("nobody", ""):
            given = await loopback.call(caller, "claudecode_create", {"name": "x"}, "k")
            assert given["type"] == "error"
            given = await loopback.call(caller, "claudecode_get", {"session_id": record}, "k")
            assert given["code"] == "not_found"


async def test_a_session_that_was_handed_over_is_no_longer_seen(home: Home) -> None:
    async with opened(home) as supervisor:
        root = await parent_with(home, supervisor, *WORKS, name="root", orphans="hand over")
        child = await root.child("child", prompt=None)
        await until(supervisor, child, "idle")
        await supervisor.stop(root.id)
        await supervisor.wait(child, lambda record: record.lineage == (), 15)
        assert await root.refused("claudecode_get", session_id=child) == "not_found"


# --- arguments


WRONG_ARGUMENTS: list[tuple[str, dict[str, Any]]] = [
    ("claudecode_create", {}),
    ("claudecode_create", {"name": ""}),
    ("claudecode_create", {"name": 5}),
    ("claudecode_create", {"name": "x", "policy": "/etc/passwd"}),
    ("claudecode_create", {"name": "x", "permission_mode": "yolo"}),
    ("claudecode_create", {"name": "x", "allowed_tools": "Bash"}),
    ("claudecode_create", {"name": "x", "limits": {"turns": -1}}),
    ("claudecode_create", {"name": "x", "limits": {"gold": 1}}),
    ("claudecode_create", {"name": "x", "parent": "root"}),
    ("claudecode_create", {"name": "x", "working_dir": "nowhere"}),
    ("claudecode_create", {"name": "x", "command": "rm"}),
    ("claudecode_poll", {}),
    ("claudecode_poll", {"session_ids": []}),
    ("claudecode_poll", {"session_ids": ["x"] * 33}),
    ("claudecode_poll", {"name": "child", "session_ids": ["child"]}),
    ("claudecode_poll", {"name": "child", "session_id": "child"}),
    ("claudecode_poll", {"name": "child", "limit": 0}),
    ("claudecode_poll", {"name": "child", "limit": 10**9}),
    ("claudecode_poll", {"name": "child", "wait_ms": 10**9}),
    ("claudecode_poll", {"name": "child", "from_seq": -1}),
    ("claudecode_poll", {"name": "child", "from_seq": 1.5}),
    ("claudecode_poll", {"name": "child", "from_seq": 0, "cursor": "x"}),
    ("claudecode_poll", {"name": "child", "until": "tomorrow"}),
    ("claudecode_poll", {"name": "child", "detail": "all"}),
    ("claudecode_poll", {"name": "child", "caller": "root"}),
    ("claudecode_chat_async", {"name": "child"}),
    ("claudecode_chat_async", {"name": "child", "prompt": ""}),
    ("claudecode_chat_async", {"name": "child", "prompt": "x", "on_busy": "wait"}),
    ("loopback_respond", {"approval_id": "x"}),
    ("loopback_respond", {"approval_id": "x", "approve": "yes"}),
    ("loopback_respond", {"approval_id": "x", "approve": True, "by": "person"}),
    ("loopback_escalate", {"approval_id": "x"}),
    ("claudecode_list", {"limit": 0}),
]


async def test_arguments_that_can_not_be_are_refused_in_words(home: Home) -> None:
    async with opened(home) as supervisor:
        root = await parent_with(home, supervisor, *WORKS)
        await root.child("child", prompt=None)
        for tool, arguments in WRONG_ARGUMENTS:
            before = len(supervisor.list())
            assert await root.refused(tool, **arguments) == "invalid_arguments"
            assert len(supervisor.list()) == before


MADE_UP_CURSORS = ["", "x", "AQ", "AQAA", "????", "é" * 20, "A" * 1_000]


async def test_a_cursor_that_was_made_up_is_refused(home: Home) -> None:
    async with opened(home) as supervisor:
        root = await parent_with(home, supervisor, *WORKS)
        await root.child("child", prompt=None)
        for cursor in MADE_UP_CURSORS:
            assert await root.refused("claudecode_poll", name="child", cursor=cursor) == (
                "invalid_cursor"
            )


async def test_a_cursor_of_another_session_is_refused(home: Home) -> None:
    async with opened(home) as supervisor:
        root = await parent_with(home, supervisor, *WORKS)
        await root.child("one", prompt=None)
        await root.child("two", prompt=None)
        given = await root.ok("claudecode_poll", name="one", wait_ms=0)
        code = await root.refused("claudecode_poll", name="two", cursor=given["cursor"])
        assert code == "invalid_cursor"


async def test_what_is_not_an_object_or_no_tool_is_refused(home: Home) -> None:
    async with opened(home) as supervisor:
        root = await parent_with(home, supervisor, *WORKS)
        assert await root.refused("claudecode_fly") == "unknown_method"
        loopback: Any = loopback_of(supervisor)
        wrong: list[Any] = [None, [], "x", 5]
        for arguments in wrong:
            given = await loopback.call(root.id, "claudecode_list", arguments, "k")
            assert given["code"] == "invalid_arguments"


async def test_people_see_by_whom_a_session_was_made(home: Home) -> None:
    async with opened(home) as supervisor:
        root = await parent_with(home, supervisor, *WORKS)
        child = supervisor.get(await root.child("child", prompt=None))
        assert root.id in child.by or child.by != ME.name


async def test_what_was_to_be_deleted_and_is_anothers_now_stays(home: Home) -> None:
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, *WORKS, orphans="hand over")
        child = await parent.child()
        await until(supervisor, child, "running")
        given = await parent.call("claudecode_delete", "key", session_id=child)
        assert given["code"] == "not_possible"
        await supervisor.stop(parent.id)
        await supervisor.wait(child, lambda record: not record.lineage, LIMIT)
        await supervisor.stop(child)
        await supervisor.start(parent.id)
        await until(supervisor, parent.id, "idle")
        given = await parent.call("claudecode_delete", "key", session_id=child)
        assert given["code"] == "not_found"
        assert supervisor.get(child).id == child
