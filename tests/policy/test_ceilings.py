"""A session below others: whatever its own policy says, those above it set its bounds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bridle.policy import Allowed, Call, Denied, InForce, Policy
from bridle.policy.ceilings import REMEMBERED_BY_AGENT, Above
from bridle.policy.delegable import delegable
from bridle.policy.delegation import Delegation
from bridle.policy.presets import NAMES
from tests.levels import tries

from .grounds import FOLDER, GROUND, bash, real_ground, told

NARROW = Policy("ask", allow=["Bash(npm test:*)"], deny=["Bash(rm:*)"])


def below(own: Policy, *above: Policy) -> InForce:
    bounds = [
        Above(f"s{number}", Delegation(policy, GROUND)) for number, policy in enumerate(above)
    ]
    return InForce(own, GROUND, bounds)


def edit(path: str) -> Call:
    return Call("Edit", {"file_path": path})


# --- ways to have more than those above


def test_a_wide_policy_is_bounded_by_those_above() -> None:
    for own in (Policy("autonomous"), Policy("ask", allow=["Bash", "Edit", "WebFetch", "mcp__x"])):
        force = below(own, NARROW)
        assert told(force.judge(bash("npm test"))) == "allow"
        assert told(force.judge(bash("make"))) == "ask"
        assert told(force.judge(bash("npm test && make"))) == "ask"
        assert told(force.judge(bash("rm x"))) == "deny"
        assert told(force.judge(edit("src/a.py"))) == "ask"
        assert told(force.judge(Call("WebFetch", {"url": "https://x.example"}))) == "ask"
        assert told(force.judge(Call("mcp__x__y", {}))) == "ask"
        assert told(force.judge(Call("NewTool", {}))) == "ask"


def test_it_is_told_who_may_not_delegate_it() -> None:
    force = below(Policy("autonomous"), Policy("autonomous"), NARROW)
    verdict = force.judge(bash("make"))
    assert verdict.because.startswith("session s1 above it may not delegate this: no rule allows")
    assert "session s1 above it may not delegate this" in force.explain(bash("make"))
    denied = force.judge(bash("rm x"))
    assert isinstance(denied, Denied)
    assert denied.because == "session s1 above it: the policy denies Bash(rm:*)"


def test_a_strict_policy_stays_strict_below_wide_ones() -> None:
    force = below(Policy("ask", deny=["Bash(make)"]), Policy("autonomous"), Policy("autonomous"))
    assert told(force.judge(bash("make"))) == "deny"
    assert told(force.judge(bash("ls"))) == "ask"


def test_one_far_above_counts_as_much_as_the_nearest() -> None:
    wide = Policy("autonomous")
    assert told(below(wide, NARROW, wide, wide).judge(bash("make"))) == "ask"
    assert told(below(wide, wide, wide, NARROW).judge(bash("make"))) == "ask"
    assert told(below(wide, wide, NARROW, wide).judge(bash("rm x"))) == "deny"


def test_what_is_for_a_person_above_is_so_below() -> None:
    people = Policy("autonomous", human_only=["Bash(git push:*)"])
    force = below(Policy("autonomous", ask=["Bash(git:*)"], has_guard=False), people)
    assert told(force.judge(bash("npm test && git push"))) == "guard"
    assert told(force.judge(bash("git pull"))) == "ask"
    force.remember("Bash(git push:*)", source="remembered by-a-person")
    assert told(force.judge(bash("git push"))) == "guard"


def test_the_guard_of_those_above_holds_where_it_is_switched_off_below() -> None:
    force = below(Policy("autonomous", has_guard=False), Policy("autonomous"))
    assert told(force.judge(edit("/home/me/.bridle/x"))) == "guard"
    assert told(force.judge(bash("claude --dangerously-skip-permissions"))) == "guard"


def test_modes_and_folders_that_come_later_open_nothing() -> None:
    force = below(Policy("ask"), Policy("edits"))
    force.choose("bypassPermissions")
    assert told(force.judge(edit("src/a.py"))) == "allow"
    assert told(force.judge(bash("make"))) == "ask"
    force.add_folders(["/etc"])
    assert told(force.judge(edit("/etc/x"))) == "ask"
    force.go_on("autonomous", ["/etc"], "")
    assert told(force.judge(edit("/etc/x"))) == "ask"


def test_another_policy_is_bounded_as_the_first_was() -> None:
    force = below(Policy("ask"), NARROW)
    force.apply(Policy("autonomous", allow=["Bash"]))
    assert told(force.judge(bash("make"))) == "ask"
    assert told(force.judge(bash("rm x"))) == "deny"


def test_relative_paths_and_links_are_seen_from_where_the_child_stands(tmp_path: Path) -> None:
    parent, child, other = tmp_path / "app", tmp_path / "app" / "child", tmp_path / "other"
    child.mkdir(parents=True)
    other.mkdir()
    (child / "link").symlink_to(other)
    above = [Above("p", Delegation(Policy("edits"), real_ground(parent)))]
    force = InForce(Policy("autonomous"), real_ground(child), above)
    assert told(force.judge(edit("a.py"))) == "allow"
    assert told(force.judge(edit("../b.py"))) == "allow"
    # Where `..` comes after a link, what is meant is beside the link's target.
    for path in ("../../c.py", "link/x", f"{child}/link/x", "/etc/passwd", "~/x", "link/../x/../y"):
        assert told(force.judge(edit(path))) == "ask", path
    # Seen from the parent, `child` would be another folder.
    assert told(force.judge(Call("Bash", {"command": "echo x > a"}, cwd=str(other)))) == "ask"


# --- what was remembered


def test_what_a_person_had_remembered_gets_past_those_above_unless_they_deny_it() -> None:
    force = below(Policy("ask", allow=["Bash(curl:*)"]), NARROW)
    force.remember("Bash(make:*)", source="remembered 1")
    force.remember("Bash(rm:*)", source="remembered 2")
    assert told(force.judge(bash("make all"))) == "allow"
    assert told(force.judge(bash("cd src && make all"))) == "allow"
    assert told(force.judge(bash("rm x"))) == "deny"
    # All of it must be by what they said: not the rest by its own policy.
    assert told(force.judge(bash("make all && curl x"))) == "ask"
    assert told(force.judge(bash("curl x && make all"))) == "ask"
    force.forget("Bash(make:*)", source="remembered 1")
    assert told(force.judge(bash("make all"))) == "ask"


def test_what_a_person_had_remembered_opens_nothing_that_those_above_want_asked() -> None:
    above = Policy("edits", ask=["Read(./drafts/**)"])
    force = below(Policy("ask", allow=["Read"]), above)
    force.remember("Bash(make:*)", source="remembered 1")
    assert told(force.judge(Call("Read", {"file_path": "drafts/x"}))) == "ask"
    assert told(force.judge(Call("Read", {"file_path": "drafts/x"}, "plan"))) == "ask"


def test_what_an_agent_had_remembered_does_not() -> None:
    force = below(Policy("ask"), NARROW)
    force.remember("Bash", source=f"{REMEMBERED_BY_AGENT} 1")
    force.remember("Edit", source=f"{REMEMBERED_BY_AGENT} 2")
    assert told(force.judge(bash("npm test"))) == "allow"
    assert told(force.judge(bash("make"))) == "ask"
    assert told(force.judge(edit("src/a"))) == "ask"
    # Beside a person's, it does not either.
    force.remember("Bash(make:*)", source="remembered 3")
    assert told(force.judge(bash("make"))) == "allow"
    assert told(force.judge(bash("make && curl x"))) == "ask"
    # Under another policy it is what it was.
    force.apply(Policy("ask"))
    assert told(force.judge(bash("make"))) == "allow"
    assert told(force.judge(edit("src/a"))) == "ask"


def test_without_anybody_above_nothing_is_different() -> None:
    force = InForce(NARROW, GROUND)
    for call in (bash("npm test"), bash("make"), bash("rm x")):
        assert force.judge(call) == NARROW.on(GROUND).judge(call)


# --- whatever it is

RANK = {"allow": 0, "ask": 1, "guard": 2, "deny": 3}

RULES = st.sampled_from(
    [
        *("Bash", "Bash(npm test:*)", "Bash(git push:*)", "Bash(rm:*)", "Bash(make)", "Edit"),
        *("Edit(/src/**)", "Edit(//etc/**)", "Read(./secrets/**)", "WebFetch", "mcp__x"),
        *("WebFetch(domain:a.example)", "Task", "mcp__bridle", "TodoWrite"),
    ]
)
LISTS = st.lists(RULES, max_size=4)
ENTRIES = st.none() | st.lists(
    st.builds(
        delegable,
        st.lists(RULES, min_size=1, max_size=3),
        count=st.none() | st.just(3),
        paths=st.sampled_from([(), ("./packages/**",)]),
    ),
    max_size=3,
)
POLICIES = st.builds(
    Policy,
    st.sampled_from(NAMES),
    allow=LISTS,
    ask=LISTS,
    deny=LISTS,
    has_guard=st.booleans(),
    human_only=st.lists(RULES, max_size=2),
    delegate=ENTRIES,
)
CALLS = st.builds(
    Call,
    st.just("Bash"),
    st.fixed_dictionaries(
        {
            "command": st.sampled_from(
                [
                    *(
                        "npm test",
                        "make",
                        "npm test && make",
                        "git push",
                        "rm -rf x",
                        "ls",
                        "cd src",
                    ),
                    *(
                        "npm test > src/out",
                        "echo x > /etc/y",
                        'eval "$X"',
                        "cat secrets/a",
                        "$X y",
                    ),
                    *("claude --dangerously-skip-permissions", "make; git push", "cat /etc/passwd"),
                ]
            )
        }
    ),
    st.sampled_from([None, "default", "plan", "acceptEdits", "bypassPermissions"]),
    st.sampled_from(["", FOLDER, f"{FOLDER}/src", "/etc"]),
) | st.builds(
    Call,
    st.sampled_from(["Edit", "Read", "Write", "Grep", "WebFetch", "mcp__x__y", "TodoWrite", "Odd"]),
    st.fixed_dictionaries(
        {
            "file_path": st.sampled_from(
                ["a", "src/a", "/etc/a", "../x", "secrets/a", "/home/me/.bridle/t", "", 3]
            ),
            "path": st.sampled_from([FOLDER, "secrets", "/"]),
            "url": st.sampled_from(["https://a.example/x", "https://b.example"]),
        }
    ),
    st.sampled_from([None, "plan"]),
    st.sampled_from(["", f"{FOLDER}/src", "/etc"]),
)


def ceilings_of(policies: Sequence[Policy]) -> list[Above]:
    return [Above(str(at), Delegation(policy, GROUND)) for at, policy in enumerate(policies)]


@settings(max_examples=tries(50, 500), deadline=None)
@given(POLICIES, st.lists(POLICIES, min_size=1, max_size=3), st.lists(RULES, max_size=3), CALLS)
def test_a_verdict_is_never_laxer_than_that_of_anybody_above(
    own: Policy, above: list[Policy], remembered: list[str], call: Call
) -> None:
    bounds = ceilings_of(above)
    force = InForce(own, GROUND, bounds)
    for rule in remembered:
        force.remember(rule, source=f"{REMEMBERED_BY_AGENT} {rule}")
    rank = RANK[told(force.judge(call))]
    for one in bounds:
        assert rank >= RANK[told(one.delegation.ceiling(call, GROUND.folder))]
    assert rank >= RANK[told(InForce(force.policy, GROUND).judge(call))]


@settings(max_examples=tries(50, 500), deadline=None)
@given(POLICIES, st.lists(POLICIES, min_size=1, max_size=3), st.lists(RULES, max_size=3), CALLS)
def test_what_people_had_remembered_gets_past_no_denial_and_no_guard(
    own: Policy, above: list[Policy], remembered: list[str], call: Call
) -> None:
    bounds = ceilings_of(above)
    force = InForce(own, GROUND, bounds)
    for rule in remembered:
        force.remember(rule, source=f"remembered {rule}")
    verdict = force.judge(call)
    ranks = [RANK[told(one.delegation.ceiling(call, GROUND.folder))] for one in bounds]
    assert RANK[told(verdict)] >= max(rank for rank in (*ranks, 0) if rank != 1)
    if isinstance(verdict, Allowed) and 1 in ranks:
        # Then by what they said, and by nothing else.
        said = Policy("ask", allow=remembered, has_guard=False)
        assert told(said.on(GROUND).judge(Call(call.tool, call.input, None, call.cwd))) == "allow"


@settings(max_examples=tries(50, 500), deadline=None)
@given(POLICIES, st.lists(POLICIES, max_size=2), CALLS, st.sampled_from([FOLDER, "/etc", ""]))
def test_what_is_granted_is_denied_to_and_guarded_from_nobody_above(
    policy: Policy, above: list[Policy], call: Call, folder: str
) -> None:
    bounds = [Delegation(one, GROUND) for one in above]
    found: Any = Delegation(policy, GROUND, bounds).grant(call, folder=folder, age=0, used={})
    if hasattr(found, "rule"):
        cwd = call.cwd or folder
        own = policy.on(GROUND).judge(Call(call.tool, call.input, call.mode, cwd))
        assert told(own) != "guard"
        assert not isinstance(own, Denied) or own.rule.startswith("preset ")
        assert all(told(one.ceiling(call, folder)) == "allow" for one in bounds)
        if policy.delegate is None:
            assert told(own) == "allow"
