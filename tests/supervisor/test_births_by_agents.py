"""Sessions that agents make: below themselves, of what they have, and bounded by it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bridle.approvals import Agent, MayNotDecide, Policies
from bridle.approvals.trust import TrustedFolders
from bridle.errors import (
    BudgetTooSmall,
    InvalidLaunch,
    InvalidPolicy,
    LimitReached,
    NotPossible,
    UnknownSession,
    WiderThanParent,
)
from bridle.policy import Call, InForce, Policy
from bridle.policy.delegable import delegable
from bridle.session.folder import survey_of
from bridle.supervisor import Limits, LineageLimits, Plain, SessionRecord, Supervisor
from bridle.supervisor.making import gate_of
from bridle.supervisor.policies import Named
from bridle.testing import FakeCli
from bridle.views import stream
from tests.policy.grounds import bash, told

from .homes import ASKS, LIMIT, ME, TURN, Home, asked, bodies, until

RM = bash("rm x")


async def parent(home: Home, supervisor: Supervisor, **options: Any) -> SessionRecord:
    """An agent that may run others, and has nothing to do yet."""
    made = await home.start(supervisor, *TURN, **{"prompt": None, "loopback": True, **options})
    return await begun(supervisor, made)


async def begun(supervisor: Supervisor, session: SessionRecord) -> SessionRecord:
    """Once it is there, and its start is over."""
    record = await until(supervisor, session.id, "idle")
    await supervisor._sessions.get(session.id).begun(LIMIT)
    return record


async def child(supervisor: Supervisor, above: SessionRecord, **options: Any) -> SessionRecord:
    """One that an agent makes and does not start yet."""
    given = {"cwd": above.folder, "start": False, **options}
    return await supervisor.create(by=Agent(above.id), **given)


async def test_a_folder_that_is_reached_by_a_link_holds_what_is_below_it(home: Home) -> None:
    (home.work / "sub").mkdir()
    link = home.work.parent / "link"
    link.symlink_to(home.work)
    async with home.open() as supervisor:
        command = home.cli(*TURN).command
        above = await supervisor.create(cwd=link, by=ME, command=command, loopback=True)
        made = await child(supervisor, await begun(supervisor, above), cwd="sub")
        assert made.folder in (str(link / "sub"), str(home.work / "sub"))


async def force(supervisor: Supervisor, session: SessionRecord) -> InForce:
    """What is in force for it."""
    gate, _ = await gate_of(supervisor._means, supervisor.get(session.id), "a launch")
    return gate.policy


async def judged(supervisor: Supervisor, session: SessionRecord, *calls: Call) -> list[str]:
    policy = await force(supervisor, session)
    return [told(policy.judge(call)) for call in calls]


async def children(supervisor: Supervisor, session: SessionRecord) -> list[tuple[str, str]]:
    """What its stream says of its children, once all is written."""
    await supervisor._sessions.get(session.id).pen.idle_or_stuck()
    events = await bodies(supervisor, session.id, stream.CHILD_CREATED)
    return [(event.session, event.name) for event in events]


def argv(cli: FakeCli) -> list[list[str]]:
    """The arguments of each launch of it."""
    return [entry["argv"] for entry in cli.report() if "argv" in entry]


# --- whose it is


async def test_it_is_a_child_of_the_agent_that_makes_it(home: Home) -> None:
    async with home.open() as supervisor:
        above = await parent(home, supervisor, name="root")
        made = await child(supervisor, above, name="one", labels={"a": "b"}, asks_above=False)
        assert (made.parent, made.lineage) == (above.id, (above.id,))
        assert made.by == f"agent {above.id}"
        assert (made.loopback, made.asks_above) == (True, False)
        [ceiling] = made.ceilings
        assert (ceiling.session, ceiling.policy) == (above.id, above.policy)
        assert (ceiling.folder, ceiling.homes) == (above.folder, above.homes)
        assert await children(supervisor, above) == [(made.id, "one")]
        applied = await Policies(supervisor.journal, supervisor._means.owners, lambda: 0).applied(
            made.id
        )
        assert applied
        assert applied.by == Agent(above.id)


async def test_it_is_no_child_of_anybody_else(home: Home) -> None:
    async with home.open() as supervisor:
        above = await parent(home, supervisor, name="root")
        other = await parent(home, supervisor, name="other")
        for given in (other.id, "other", "nobody"):
            with pytest.raises(UnknownSession):
                await child(supervisor, above, parent=given)
        with pytest.raises(UnknownSession):
            await supervisor.create(cwd=home.work, by=Agent("no-such-agent"))
        made = await child(supervisor, above, parent="root")
        assert made.parent == above.id
        assert len(supervisor.list()) == 3


async def test_only_one_that_may_run_others_and_that_lives_has_children(home: Home) -> None:
    async with home.open() as supervisor:
        plain = await parent(home, supervisor, loopback=False)
        with pytest.raises(NotPossible, match="loopback"):
            await child(supervisor, plain)
        above = await parent(home, supervisor)
        await supervisor.stop(above.id)
        await until(supervisor, above.id, "stopped")
        with pytest.raises(NotPossible, match="resume it first"):
            await child(supervisor, above)


async def test_limits_hold_and_the_deepest_run_no_others(home: Home) -> None:
    async with home.open(lineage=LineageLimits(depth=2, children=1)) as supervisor:
        root = await parent(home, supervisor, limits=Limits(turns=10))
        with pytest.raises(BudgetTooSmall):
            await child(supervisor, root, limits=Limits(turns=11))
        first = await child(supervisor, root, start=True, limits=Limits(turns=5))
        first = await until(supervisor, first.id, "idle")
        with pytest.raises(LimitReached, match="live children"):
            await child(supervisor, root)
        second = await child(supervisor, first, start=True, limits=Limits(turns=2))
        assert (first.loopback, second.loopback) == (True, False)
        await until(supervisor, second.id, "idle")
        with pytest.raises(NotPossible, match="loopback"):
            await child(supervisor, second)


async def test_the_same_id_is_one_child(home: Home) -> None:
    async with home.open() as supervisor:
        above = await parent(home, supervisor)
        name = "7f9c24e8-3b12-4fef-91e0-56a2d5a5a5a5"
        made = await asyncio.gather(
            *(child(supervisor, above, id=name) for _ in range(3)), return_exceptions=True
        )
        assert sum(isinstance(one, SessionRecord) for one in made) == 1
        assert len(supervisor.list()) == 2


# --- how it is run


async def test_it_is_run_as_its_parent_is_without_a_folders_settings_or_servers(
    home: Home,
) -> None:
    cli = home.cli(*TURN)
    given = {
        "command": cli.command,
        "env": {"PLAIN": Plain("a"), "SECRET": "b"},
        "mcp_config": {"mcpServers": {"mine": {"command": "x"}}},
        "extra_args": ["--debug"],
        "setting_sources": ["user"],
        "model": "opus",
        "entrypoint": "mine",
        "allowed_tools": ["Bash(ls)"],
    }
    async with home.open() as supervisor:
        above = await parent(home, supervisor, **given)
        made = await child(supervisor, above, start=True, prompt="go", allowed_tools=["Bash(pwd)"])
        await supervisor.wait(made.id, lambda record: record.turns == 1, LIMIT)
        first, second = argv(cli)
        for launch in (first, second):
            assert "--strict-mcp-config" in launch
            assert "--model=opus" in launch
        assert {"--setting-sources=user", "--debug"} <= set(first)
        assert {"--setting-sources=user", "--debug"} <= set(second)
        assert not [word for word in second if "mcp-config=" in word or "allowed" in word.lower()]
        assert made.env == {"PLAIN": "plain:a", "SECRET": "given"}
        variables = supervisor._means.variables(supervisor.get(made.id))
        assert variables == {"PLAIN": "a", "SECRET": "b"}
        assert ("SECRET", "b") in supervisor.secret_values.all
        assert made.spec["entrypoint"] == "mine"


async def test_what_restricts_its_parent_restricts_it(home: Home) -> None:
    settings = home.work / ".claude"
    settings.mkdir()
    told = {"sandbox": {"enabled": True, "excludedCommands": ["git"]}, "model": "haiku"}
    (settings / "settings.json").write_bytes(msgspec.json.encode(told))
    told = {"sandbox": {"allowUnsandboxedCommands": False, "excludedCommands": ["git", "npm"]}}
    (settings / "settings.local.json").write_bytes(msgspec.json.encode(told))
    (home.work / "sub").mkdir()
    cli = home.cli(*TURN)
    given: dict[str, Any] = {
        "command": cli.command,
        "settings": {"permissions": {"deny": ["Bash(rm:*)"]}, "sandbox": {"enabled": True}},
        "extra_args": ["--disallowedTools=WebFetch"],
        "builtin_tools": ["Read", "Bash"],
        "plugin_dirs": [str(home.work)],
        "max_turns": 7,
        "max_budget_usd": 2.5,
    }
    async with home.open() as supervisor:
        seen = survey_of(home.work)
        await TrustedFolders(supervisor.journal).trust(seen.folder, seen.digest, [], ME)
        above = await supervisor.create(
            cwd=home.work, by=ME, policy="autonomous", loopback=True, **given
        )
        await begun(supervisor, above)
        made = await child(
            supervisor, above, cwd=home.work / "sub", start=True, prompt="go",
            policy="autonomous", max_turns=9, max_budget_usd=1.0,
        )  # fmt: skip
        await supervisor.wait(made.id, lambda record: record.turns == 1, LIMIT)
        assert made.spec["settings"] == {
            "permissions": {"deny": ["Bash(rm:*)"]},
            "sandbox": {
                "enabled": True,
                "excludedCommands": ["git", "npm"],
                "allowUnsandboxedCommands": False,
            },
        }
        words = argv(cli)[1]
        assert {
            "--setting-sources=user",
            "--disallowedTools=WebFetch",
            "--tools=Read,Bash",
            f"--plugin-dir={home.work}",
            "--max-turns=7",
            "--max-budget-usd=1.0",
        } <= set(words)
        assert await judged(supervisor, made, RM) == ["deny"]
        for tools in (["Write"], ["Read", "Write"]):
            with pytest.raises(WiderThanParent, match="the tool 'Write' is wider"):
                await child(supervisor, above, builtin_tools=tools)
        fewer = await child(supervisor, above, builtin_tools=["Read"])
        assert fewer.spec["builtin_tools"] == ["Read"]
        below = await child(supervisor, made, policy="autonomous")
        assert below.spec["settings"] == made.spec["settings"]
        assert await judged(supervisor, below, RM) == ["deny"]


async def test_it_is_the_agent_that_its_parent_is_or_is_not_made(
    home: Home, tmp_path: Path
) -> None:
    """A CLI that does not find an agent has all tools."""
    (tmp_path / "claude" / "agents").mkdir(parents=True)
    (tmp_path / "claude" / "agents" / "careful.md").write_text("---\nname: careful\n---\n")
    env = {"CLAUDE_CONFIG_DIR": Plain(str(tmp_path / "claude"))}
    async with home.open() as supervisor:
        above = await parent(home, supervisor, agent="careful", env=env)
        assert (await child(supervisor, above)).spec["agent"] == "careful"
        other = await parent(home, supervisor, agent="of-the-folder", env=env)
        with pytest.raises(InvalidLaunch, match="of-the-folder"):
            await child(supervisor, other)


async def test_settings_that_its_parent_does_not_read_say_nothing_of_it(home: Home) -> None:
    """They might open the sandbox that its user's settings ask for."""
    (home.work / ".claude").mkdir()
    (home.work / ".claude" / "settings.json").write_text('{"sandbox": {"enabled": false}}')
    async with home.open() as supervisor:
        above = await parent(home, supervisor)
        assert "settings" not in (await child(supervisor, above)).spec
        wide = await parent(home, supervisor, setting_sources=["user", "project"])
        made = await child(supervisor, wide)
        assert made.spec["settings"] == {"sandbox": {"enabled": False}}


async def test_what_its_user_is_denied_it_is_denied_too(home: Home, tmp_path: Path) -> None:
    (tmp_path / "claude").mkdir()
    (tmp_path / "claude" / "settings.json").write_text('{"permissions": {"deny": ["Bash(rm:*)"]}}')
    env = {"CLAUDE_CONFIG_DIR": Plain(str(tmp_path / "claude"))}
    async with home.open() as supervisor:
        for sources, verdict in ((None, "deny"), (["user"], "deny"), ([], "allow")):
            above = await parent(
                home, supervisor, env=env, setting_sources=sources, policy="autonomous"
            )
            made = await child(supervisor, above, policy="autonomous")
            assert made.spec["setting_sources"] == ([] if sources == [] else ["user"])
            assert await judged(supervisor, made, RM) == [verdict]


@pytest.mark.parametrize("settings", ["gone.json", "{", "broken.json"])
async def test_without_its_parents_settings_there_is_no_child(home: Home, settings: str) -> None:
    """Nobody knows what they restrict."""
    (home.work / "broken.json").write_text("[]")
    async with home.open() as supervisor:
        above = await parent(home, supervisor)
        supervisor._sessions.get(above.id).record.spec["settings"] = settings
        with pytest.raises(InvalidLaunch, match="settings"):
            await child(supervisor, above)
        assert len(supervisor.list()) == 1


async def test_one_that_was_told_by_hand_which_conversation_it_is_has_no_children(
    home: Home,
) -> None:
    async with home.open() as supervisor:
        for words in (["--resume=x"], ["--continue"], ["--session-id", "y"], ["-rx"]):
            above = await parent(home, supervisor, extra_args=words)
            with pytest.raises(InvalidLaunch, match=words[0].partition("=")[0]):
                await child(supervisor, above)


async def test_it_is_told_what_the_project_has_for_agents(home: Home) -> None:
    (home.work / "CLAUDE.md").write_text("Use tabs here.")
    cli = home.cli(*TURN)
    async with home.open() as supervisor:
        above = await parent(home, supervisor, command=cli.command)
        made = await child(supervisor, above, start=True, prompt="go")
        await supervisor.wait(made.id, lambda record: record.turns == 1, LIMIT)
        [told] = [word for word in argv(cli)[-1] if word.startswith("--append-system-prompt=")]
        assert "Use tabs here." in told


async def test_what_it_may_choose_is_chosen(home: Home) -> None:
    cli = home.cli(*TURN)
    async with home.open() as supervisor:
        above = await parent(home, supervisor, command=cli.command, model="opus")
        made = await child(
            supervisor, above, start=True, prompt="go", model="haiku", system_prompt="Be brief.",
            disallowed_tools=["WebFetch"], permission_mode="default",
        )  # fmt: skip
        await supervisor.wait(made.id, lambda record: record.turns == 1, LIMIT)
        wanted = {"--model=haiku", "--system-prompt=Be brief.", "--disallowedTools=WebFetch"}
        assert wanted <= set(argv(cli)[1])
        fetch = Call("WebFetch", {"url": "https://example.com"})
        assert await judged(supervisor, made, fetch) == ["deny"]


OPTIONS_OF_PEOPLE: list[dict[str, Any]] = [
    {"command": ["/bin/sh"]},
    {"containment": ["env"]},
    {"router": "1"},
    {"extra_args": ["--dangerously-skip-permissions"]},
    {"dangerously_skip_permissions": True},
    {"allow_dangerously_skip_permissions": True},
    {"settings": {"permissions": {"allow": ["Bash"]}}},
    {"setting_sources": ["user", "project"]},
    {"mcp_config": {"mcpServers": {"x": {"command": "y"}}}},
    {"strict_mcp_config": False},
    {"plugin_dirs": ["/tmp"]},
    {"debug_file": "/tmp/x"},
    {"agent": "x"},
    {"unset": ["X"]},
    {"inherit_env": False},
    {"resume_session_at": "x"},
    {"hook_events": True},
    {"session_id": "x"},
    {"env": {"PATH": "/tmp"}},
]


async def test_what_is_run_and_loaded_is_not_for_an_agent_to_choose(home: Home) -> None:
    async with home.open() as supervisor:
        above = await parent(home, supervisor)
        for option in OPTIONS_OF_PEOPLE:
            with pytest.raises(InvalidLaunch):
                await child(supervisor, above, **option)
            assert len(supervisor.list()) == 1


# --- where


async def test_it_works_inside_of_its_parents_folders(home: Home, tmp_path: Path) -> None:
    inside, beside, outside = home.work / "src", tmp_path / "beside", tmp_path / "outside"
    for folder in (inside, beside / "deep", outside):
        folder.mkdir(parents=True)
    (inside / "here").symlink_to(home.work / "src")
    (inside / "there").symlink_to(outside)
    async with home.open() as supervisor:
        above = await parent(home, supervisor, add_dirs=[beside])
        for given, folder in (
            (inside, inside),
            ("src", inside),
            (".", home.work),
            (inside / "here", inside),
            (inside / ".." / "src", inside),
            (beside / "deep", beside / "deep"),
        ):
            made = await child(supervisor, above, cwd=given)
            assert made.folder == str(folder)
            await supervisor.delete(made.id)
        for given in (
            outside,
            inside / "there",
            "src/there",
            "..",
            inside / ".." / "..",
            "/",
            f"{home.work}-more",
            inside / "there" / ".." / "beside-it",
        ):
            with pytest.raises(WiderThanParent) as refused:
                await child(supervisor, above, cwd=given)
            assert refused.value.what == "working folder"
            assert str(home.work) in refused.value.given
        with pytest.raises(InvalidLaunch, match="no folder"):
            await child(supervisor, above, cwd="not-there")
        with pytest.raises(WiderThanParent, match="further folder"):
            await child(supervisor, above, add_dirs=[str(inside), str(inside / "there")])
        made = await child(supervisor, above, add_dirs=["src", str(beside)])
        assert made.spec["add_dirs"] == [str(inside), str(beside)]


async def test_a_folder_that_is_moved_elsewhere_later_opens_nothing(
    home: Home, tmp_path: Path
) -> None:
    inside, outside = home.work / "src", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    async with home.open() as supervisor:
        above = await parent(home, supervisor, policy="edits")
        made = await child(supervisor, above, cwd=inside, policy="edits")
        edit = Call("Edit", {"file_path": str(inside / "x")})
        assert await judged(supervisor, made, edit) == ["allow"]
        inside.rmdir()
        inside.symlink_to(outside)
        assert await judged(supervisor, made, edit) == ["ask"]


# --- under which policy


async def test_it_is_asked_unless_its_parent_is_stricter(home: Home) -> None:
    async with home.open() as supervisor:
        for preset, own in (
            ("autonomous", "ask"),
            ("edits", "ask"),
            ("ask", "ask"),
            ("read-only", "read-only"),
            ("plan", "plan"),
        ):
            above = await parent(home, supervisor, policy=preset)
            made = await child(supervisor, above)
            assert (await force(supervisor, made)).policy.preset == own
            await supervisor.stop(above.id)


@pytest.mark.parametrize(
    ("wide", "above_preset"),
    [
        ({"policy": "edits"}, "ask"),
        ({"policy": "autonomous"}, "edits"),
        ({"policy": Policy("autonomous")}, "edits"),
        ({"policy": Named("x", Policy("edits"))}, "ask"),
        ({"policy": "ask"}, "read-only"),
        ({"permission_mode": "acceptEdits"}, "ask"),
        ({"permission_mode": "bypassPermissions"}, "edits"),
        ({"permission_mode": "auto"}, "edits"),
        ({"policy": "ask", "permission_mode": "bypassPermissions"}, "edits"),
    ],
    ids=str,
)
async def test_a_preset_or_mode_that_is_wider_than_its_parents_is_refused(
    home: Home, wide: dict[str, Any], above_preset: str
) -> None:
    async with home.open() as supervisor:
        above = await parent(home, supervisor, policy=above_preset)
        with pytest.raises(WiderThanParent) as refused:
            await child(supervisor, above, **wide)
        assert refused.value.given == above_preset
        assert "ask for that or less, or have a person start the session" in str(refused.value)
        assert len(supervisor.list()) == 1


async def test_a_mode_is_a_preset_and_the_cli_is_told_of_none_that_skips_asking(
    home: Home,
) -> None:
    async with home.open() as supervisor:
        above = await parent(home, supervisor, policy="autonomous")
        for mode, preset, kept in (
            ("acceptEdits", "edits", "acceptEdits"),
            ("bypassPermissions", "autonomous", None),
            ("auto", "autonomous", None),
            ("plan", "plan", "plan"),
            ("default", "ask", "default"),
        ):
            made = await child(supervisor, above, permission_mode=mode)
            assert (await force(supervisor, made)).policy.preset == preset
            assert made.spec.get("permission_mode") == kept
            await supervisor.delete(made.id)


@pytest.mark.parametrize("given", ["mine.toml", "/etc/passwd", "settings.json", "asks"])
async def test_an_agent_has_no_file_read_for_a_policy(home: Home, given: str) -> None:
    (home.work / "mine.toml").write_text('preset = "ask"')
    async with home.open() as supervisor:
        above = await parent(home, supervisor, policy="autonomous")
        for policy in (given, Path(given)):
            with pytest.raises(InvalidPolicy, match="an agent names a preset"):
                await child(supervisor, above, policy=policy)


async def test_whatever_rules_it_is_given_those_of_its_parent_hold(home: Home) -> None:
    mine = Policy("ask", allow=["Bash(npm test:*)"], deny=["Bash(rm:*)"], ask=["Read(./drafts/**)"])
    async with home.open() as supervisor:
        above = await parent(home, supervisor, policy=mine)
        wide = Policy("ask", allow=["Bash", "Edit", "Read", "mcp__x"], has_guard=False)
        for options in (
            {"policy": wide},
            {"allowed_tools": ["Bash", "Edit", "Read", "mcp__x"]},
            {"policy": Named("stored", wide)},
        ):
            made = await child(supervisor, above, **options)
            assert await judged(
                supervisor,
                made,
                bash("npm test"),
                bash("npm test && make"),
                bash("rm x"),
                Call("Edit", {"file_path": "a"}),
                Call("Read", {"file_path": "drafts/a"}),
                Call("mcp__x__y", {}),
                Call("Edit", {"file_path": str(home.folder / "x")}),
            ) == ["allow", "ask", "deny", "ask", "ask", "ask", "guard"]
            await supervisor.delete(made.id)


async def test_it_asks_what_its_parent_may_not_delegate_though_its_own_policy_allows_it(
    home: Home,
) -> None:
    cli = home.cli(*ASKS)
    async with home.open() as supervisor:
        above = await parent(home, supervisor, command=cli.command)
        made = await child(supervisor, above, start=True, prompt="go", allowed_tools=["Bash"])
        approval = await asked(supervisor, made.id)
        assert f"session {above.id} above it may not delegate this" in approval.reason
        assert approval.lineage == (above.id,)


async def test_those_far_below_are_bounded_by_all_above_them(home: Home) -> None:
    root_policy = Policy("edits", allow=["Bash(npm test:*)"], human_only=["Bash(git push:*)"])
    async with home.open() as supervisor:
        root = await parent(home, supervisor, policy=root_policy)
        grants = [delegable(["Bash", "Edit"])]
        wide = Policy("edits", allow=["Bash", "WebFetch"], delegate=grants)
        first = await child(supervisor, root, policy=wide, start=True)
        first = await until(supervisor, first.id, "idle")
        second = await child(supervisor, first, policy=wide)
        assert [one.session for one in second.ceilings] == [root.id, first.id]
        assert await judged(
            supervisor,
            second,
            bash("npm test"),
            bash("make"),
            bash("npm test; git push"),
            Call("WebFetch", {"url": "https://example.com"}),
            Call("Edit", {"file_path": "a"}),
        ) == ["allow", "ask", "guard", "ask", "allow"]


async def test_running_others_needs_no_approval_where_it_may_and_is_a_strangers_tool_where_not(
    home: Home,
) -> None:
    call = Call("mcp__bridle__claudecode_create", {"name": "x"})
    async with home.open(lineage=LineageLimits(depth=1)) as supervisor:
        above = await parent(home, supervisor, policy=Policy("read-only", delegate=[]))
        made = await child(supervisor, above)
        assert not made.loopback
        assert await judged(supervisor, above, call) == ["allow"]
        assert await judged(supervisor, made, call) == ["ask"]
    async with home.open() as supervisor:
        above = await parent(home, supervisor, policy=Policy("read-only", delegate=[]))
        made = await child(supervisor, above)
        assert made.loopback
        assert await judged(supervisor, made, call) == ["allow"]


async def test_only_its_maker_may_put_it_under_a_policy_and_only_once(home: Home) -> None:
    async with home.open() as supervisor:
        above = await parent(home, supervisor)
        made = await child(supervisor, above)
        policies = Policies(supervisor.journal, supervisor._means.owners, lambda: 0)
        text = Policy("autonomous").text
        await policies.apply("half-born", text, source="", by=ME)
        for by, session, lineage in (
            (Agent(above.id), made.id, (above.id,)),
            (Agent(made.id), made.id, (made.id,)),
            (Agent(made.id), above.id, (made.id,)),
            (Agent(above.id), "new-one", ()),
            (Agent(above.id), "half-born", (above.id,)),
            (Agent(""), "new-one", ("x",)),
        ):
            with pytest.raises(MayNotDecide):
                await policies.apply(session, text, source="", by=by, lineage=lineage)


async def test_a_birth_that_was_cut_short_is_tried_again_and_makes_one_child(home: Home) -> None:
    name = "7f9c24e8-3b12-4fef-91e0-56a2d5a5a5a5"
    async with home.open() as supervisor:
        above = await parent(home, supervisor)
        policies = Policies(supervisor.journal, supervisor._means.owners, lambda: 0)
        by, lineage = Agent(above.id), (above.id,)
        await policies.apply(name, Policy("ask").text, source="", by=by, lineage=lineage)
        with pytest.raises(UnknownSession):
            supervisor.get(name)
        made = await child(supervisor, above, id=name, policy="read-only")
        assert (await force(supervisor, made)).policy.preset == "read-only"
        assert [one.id for one in supervisor.list()] == [above.id, name]


# --- loopback for people's sessions


@pytest.mark.parametrize(
    "name", ["bridle", "bridle__x", "bridle..x", "bridle$_y", "bridle_", "bridle."], ids=str
)
async def test_no_other_server_goes_by_our_name(home: Home, name: str) -> None:
    config = {"mcpServers": {"fine": {"command": "x"}, name: {"command": "y"}}}
    text = f'{{"mcpServers": {{"{name}": {{"command": "y"}}}}}}'
    (home.work / "servers.json").write_text(text)
    async with home.open() as supervisor:
        for given in (config, text, "servers.json", ["servers.json"], [text]):
            with pytest.raises(InvalidLaunch, match="that is Bridle's"):
                await home.start(supervisor, *TURN, loopback=True, mcp_config=given, start=False)
        others: list[Any] = [{"mcpServers": {"bridle_x": {}}}, "gone.json", "{}", {"mcpServers": 3}]
        for fine in others:
            made = await home.start(supervisor, *TURN, loopback=True, mcp_config=fine, start=False)
            assert made.spec["strict_mcp_config"] is True
        await home.start(supervisor, *TURN, mcp_config=config, start=False)
