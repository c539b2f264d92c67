"""What an agent may grant to those below it, and what they may do at most without asking."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bridle.policy import Call, Policy
from bridle.policy.delegable import delegable
from bridle.policy.delegation import Delegation, Granted, Refused

from .grounds import FOLDER, GROUND, bash, real_ground, told

CHILD = f"{FOLDER}/packages/one"


def edit(path: str = f"{FOLDER}/src/a.py", **more: Any) -> Call:
    return Call("Edit", {"file_path": path}, **more)


def grant(
    policy: Policy, call: Call, *, folder: str = CHILD, age: float = 0, used: Any = None
) -> Granted | Refused:
    return Delegation(policy, GROUND).grant(call, folder=folder, age=age, used=used or {})


def may(policy: Policy, call: Call, **more: Any) -> bool:
    return isinstance(grant(policy, call, **more), Granted)


def ceiling(policy: Policy, call: Call, folder: str = CHILD) -> str:
    return told(Delegation(policy, GROUND).ceiling(call, folder))


# --- without entries: what it may do itself


def test_without_entries_it_may_grant_what_it_may_do_itself_without_asking() -> None:
    policy = Policy("edits", allow=["Bash(npm test:*)"], deny=["Bash(npm test -- --rm)"])
    found = grant(policy, bash("npm test"))
    assert isinstance(found, Granted)
    assert (found.rule, found.is_limited) == ("Bash(npm test:*)", False)
    assert may(policy, edit())
    assert not may(policy, bash("npm publish"))
    assert not may(policy, bash("npm test && npm publish"))
    assert not may(policy, bash("npm test -- --rm"))
    assert not may(policy, edit("/etc/passwd"))
    for call in (
        bash("npm test"),
        bash("npm publish"),
        edit("/etc/passwd"),
        bash("npm test -- --rm"),
    ):
        assert ceiling(policy, call) == told(policy.on(GROUND).judge(call))


def test_what_it_may_not_grant_is_told_in_words() -> None:
    found = grant(Policy("ask"), bash("npm publish"))
    assert isinstance(found, Refused)
    assert "its own policy does not allow it without asking: no rule allows" in found.because
    found = grant(Policy("ask", delegate=[]), bash("npm publish"))
    assert isinstance(found, Refused)
    assert "lets it delegate nothing of the kind" in found.because


# --- with entries

NPM = delegable(["Bash(npm test:*)", "Edit(./src/**)"])


def test_with_entries_it_may_grant_those_and_nothing_else() -> None:
    policy = Policy("autonomous", allow=["Bash"], delegate=[NPM])
    found = grant(policy, bash("npm test -- -x"))
    assert found == Granted("Bash(npm test:*)", NPM.key, is_limited=False)
    assert may(policy, edit())
    assert not may(policy, bash("ls"))
    assert not may(policy, bash("npm test && ls"))
    assert not may(policy, bash("npm test > /etc/x"))
    assert not may(policy, edit(f"{FOLDER}/other/a.py"))
    assert ceiling(policy, bash("npm test")) == "allow"
    assert ceiling(policy, bash("ls")) == "ask"
    assert ceiling(policy, edit(f"{FOLDER}/other/a.py")) == "ask"


def test_each_of_several_entries_counts_and_which_one_it_was_is_told() -> None:
    entries = [
        delegable(["Bash(ls:*)"]),
        delegable(["Bash(npm test:*)"]),
        delegable(["Bash(make:*)"], count=2),
        delegable(["Bash(make all)", "Bash(cargo test:*)"], seconds=60),
    ]
    listing, testing, making, later = entries
    policy = Policy("ask", delegate=entries)
    for command, entry in (("ls", listing), ("npm test", listing), ("ls && npm test", listing)):
        found = grant(policy, bash(command))
        assert isinstance(found, Granted)
        assert (found.key, found.is_limited) == (entry.key, False)
        assert ceiling(policy, bash(command)) == "allow"
    for command, entry in (("make", making), ("make all", making), ("cargo test", later)):
        found = grant(policy, bash(command), age=60, used={making.key: 1, testing.key: 9})
        assert isinstance(found, Granted)
        assert (found.key, found.is_limited) == (entry.key, True)
        assert ceiling(policy, bash(command)) == "ask"
    # Where one entry is used up, another that speaks of the call may do.
    assert may(policy, bash("make all"), used={making.key: 2}, age=59)
    for command, words in (("make", "2 times, and has"), ("cargo test", "for 60 seconds")):
        found = grant(policy, bash(command), used={making.key: 2}, age=61)
        assert isinstance(found, Refused)
        assert words in found.because


def test_no_entries_at_all_grant_nothing() -> None:
    policy = Policy("autonomous", allow=["Bash"], delegate=[])
    for call in (bash("ls"), edit(), Call("Read", {"file_path": "a"}), Call("TodoWrite", {})):
        assert not may(policy, call)
    assert ceiling(policy, bash("ls")) == "ask"
    assert ceiling(policy, edit()) == "ask"


def test_what_it_may_read_itself_those_below_it_may_read_without_an_entry() -> None:
    policy = Policy("ask", deny=["Read(./secrets/**)"], ask=["Read(./drafts/**)"], delegate=[NPM])
    assert ceiling(policy, Call("Read", {"file_path": f"{FOLDER}/a"})) == "allow"
    assert ceiling(policy, Call("Grep", {"pattern": "x", "path": f"{FOLDER}/src"})) == "allow"
    assert ceiling(policy, Call("Read", {"file_path": f"{FOLDER}/secrets/a"})) == "deny"
    assert ceiling(policy, Call("Read", {"file_path": f"{FOLDER}/drafts/a"})) == "ask"
    assert ceiling(policy, Call("Read", {"file_path": "/home/me/.bridle/token"})) == "guard"
    assert ceiling(policy, Call("TodoWrite", {})) == "allow"
    assert ceiling(policy, Call("WebFetch", {"url": "https://example.com"})) == "ask"


def test_it_may_be_let_grant_what_it_must_ask_about_itself() -> None:
    policy = Policy("ask", ask=["Bash(npm test:*)"], delegate=[NPM])
    assert told(policy.on(GROUND).judge(bash("npm test"))) == "ask"
    assert may(policy, bash("npm test"))
    # But nobody was asked yet where a session below it does so by itself.
    assert ceiling(policy, bash("npm test")) == "ask"


@pytest.mark.parametrize("deny", ["Bash(npm test:*)", "Bash", "Bash(npm test -- --all)"])
def test_a_denial_can_not_be_delegated(deny: str) -> None:
    policy = Policy("ask", deny=[deny], delegate=[NPM, delegable(["Bash"], count=9)])
    assert not may(policy, bash("npm test -- --all"))
    assert not may(policy, bash("true && npm test -- --all"))
    assert ceiling(policy, bash("npm test -- --all")) == "deny"


def test_what_a_preset_denies_stays_denied_unless_an_entry_speaks_of_it() -> None:
    policy = Policy("read-only", delegate=[NPM])
    assert ceiling(policy, bash("npm test")) == "allow"
    assert ceiling(policy, bash("make")) == "deny"
    assert not may(policy, bash("make"))


@pytest.mark.parametrize(
    "call",
    [
        bash("claude --dangerously-skip-permissions -p x"),
        edit("/home/me/.bridle/x"),
        edit(f"{FOLDER}/.git/hooks/pre-commit"),
        edit(f"{FOLDER}/policies/mine.toml"),
        bash("npm test && git push"),
        Call("mcp__bank__pay", {}),
    ],
    ids=str,
)
def test_what_is_for_a_person_is_never_the_agents_to_grant(call: Call) -> None:
    wide = delegable(["Bash", "Edit(//**)", "mcp__bank"])
    people = ["Bash(git push:*)", "mcp__bank"]
    for delegate in (None, [wide], [delegable(["Bash", "Edit(//**)", "mcp__bank"], count=5)]):
        policy = Policy("autonomous", human_only=people, delegate=delegate)
        assert not may(policy, call)
        assert ceiling(policy, call) == "guard"


# --- entries that come to an end


def test_a_count_is_used_up_and_each_entry_has_its_own() -> None:
    few, more = delegable(["Bash(npm test:*)"], count=2), delegable(["Bash(npm run:*)"], count=1)
    policy = Policy("ask", delegate=[few, more])
    assert grant(policy, bash("npm test")) == Granted("Bash(npm test:*)", few.key, is_limited=True)
    assert may(policy, bash("npm test"), used={few.key: 1})
    refused = grant(policy, bash("npm test"), used={few.key: 2})
    assert isinstance(refused, Refused)
    assert refused.because == "it might delegate Bash(npm test:*) 2 times, and has"
    assert may(policy, bash("npm run x"), used={few.key: 2})
    assert few.key != more.key


def test_time_is_up_some_seconds_after_the_agent_was_made() -> None:
    policy = Policy("ask", delegate=[delegable(["Bash(npm test:*)"], seconds=60)])
    assert may(policy, bash("npm test"), age=60)
    refused = grant(policy, bash("npm test"), age=60.1)
    assert isinstance(refused, Refused)
    assert "for 60 seconds, and they are over" in refused.because


def test_what_comes_to_an_end_is_never_done_unasked() -> None:
    limited = [delegable(["Bash"], count=100), delegable(["Edit"], seconds=10**6)]
    policy = Policy("ask", delegate=limited)
    assert may(policy, bash("make"))
    assert may(policy, edit())
    assert ceiling(policy, bash("make")) == "ask"
    assert ceiling(policy, edit()) == "ask"


def test_an_entry_without_an_end_is_used_before_one_that_has_one() -> None:
    limited, free = delegable(["Bash(npm:*)"], count=1), delegable(["Bash(npm test:*)"])
    policy = Policy("ask", delegate=[limited, free])
    assert grant(policy, bash("npm test")) == Granted(
        "Bash(npm test:*)", free.key, is_limited=False
    )
    both = grant(policy, bash("npm test && npm publish"))
    assert isinstance(both, Granted)
    assert (both.key, both.is_limited) == (limited.key, True)
    assert not may(policy, bash("npm test && npm publish"), used={limited.key: 1})


# --- where


def test_an_entry_for_some_folders_is_for_sessions_that_work_there() -> None:
    policy = Policy("ask", delegate=[delegable(["Bash(npm test:*)"], paths=["./packages/**"])])
    inside, outside = f"{FOLDER}/packages/a", f"{FOLDER}/other"
    assert may(policy, bash("npm test"), folder=inside)
    assert ceiling(policy, bash("npm test"), inside) == "allow"
    for folder in (outside, FOLDER, f"{FOLDER}/packages/../other", f"{FOLDER}-packages/a", ""):
        assert not may(policy, bash("npm test"), folder=folder)
        assert ceiling(policy, bash("npm test"), folder) == "ask"


def test_who_is_asked_instead_is_told_that_it_is_for_other_folders() -> None:
    entry = delegable(["Bash(npm test:*)"], paths=["./packages/**"], count=2)
    delegation = Delegation(Policy("ask", delegate=[entry]), GROUND)
    found = delegation.grant(bash("npm test"), folder=f"{FOLDER}/packages", age=0, used={})
    assert isinstance(found, Refused)
    assert "Bash(npm test:*) only to sessions in ./packages/**" in found.because
    found = delegation.grant(bash("npm run x"), folder=f"{FOLDER}/packages", age=0, used={})
    assert isinstance(found, Refused)
    assert "nothing of the kind" in found.because


def test_a_link_does_not_bring_a_session_to_another_folder(tmp_path: Path) -> None:
    folder, other = tmp_path / "app", tmp_path / "other"
    (folder / "packages").mkdir(parents=True)
    other.mkdir()
    (folder / "packages" / "link").symlink_to(other)
    policy = Policy("ask", delegate=[delegable(["Bash(npm test:*)"], paths=["./packages/**"])])
    delegation = Delegation(policy, real_ground(folder))
    found = delegation.grant(
        bash("npm test"), folder=str(folder / "packages" / "link"), age=0, used={}
    )
    assert isinstance(found, Refused)


def test_paths_in_a_call_are_those_of_the_session_that_makes_it() -> None:
    policy = Policy("edits", allow=["Bash(npm:*)"])
    relative = Call("Edit", {"file_path": "a.py"})
    assert may(policy, relative, folder=f"{FOLDER}/src")
    assert not may(policy, relative, folder="/etc")
    assert ceiling(policy, relative, "/etc") == "ask"
    assert not may(policy, bash("npm x > out"), folder="/etc")
    assert may(policy, bash("npm x > out"), folder=f"{FOLDER}/src")
    assert not may(policy, Call("Edit", {"file_path": "../../../x"}), folder=CHILD)
    # The shell may stand elsewhere than the session.
    assert not may(policy, Call("Edit", {"file_path": "a.py"}, cwd="/etc"))


def test_rules_of_an_entry_are_bound_to_the_granting_agents_folder(tmp_path: Path) -> None:
    folder = tmp_path / "app"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "out").symlink_to(tmp_path)
    delegation = Delegation(Policy("ask", delegate=[NPM]), real_ground(folder))
    assert isinstance(
        delegation.grant(edit("a.py"), folder=str(folder / "src"), age=0, used={}), Granted
    )
    for path in ("../b.py", "out/x", "/etc/passwd"):
        found = delegation.grant(edit(path), folder=str(folder / "src"), age=0, used={})
        assert isinstance(found, Refused), path
    # Where the child calls its own folder `src` nothing is granted by that.
    (tmp_path / "else" / "src").mkdir(parents=True)
    found = delegation.grant(edit("src/a.py"), folder=str(tmp_path / "else"), age=0, used={})
    assert isinstance(found, Refused)
    assert os.path.realpath(folder) == str(folder)


# --- those above


def test_nobody_hands_on_more_than_they_were_handed() -> None:
    root = Delegation(Policy("ask", allow=["Bash(npm test:*)"]), GROUND)
    middle = Delegation(
        Policy("autonomous", delegate=[delegable(["Bash", "Edit"])]), GROUND, [root]
    )
    assert isinstance(middle.grant(bash("npm test"), folder=CHILD, age=0, used={}), Granted)
    refused = middle.grant(bash("npm publish"), folder=CHILD, age=0, used={})
    assert isinstance(refused, Refused)
    assert refused.because.startswith("those above it may not delegate it: no rule allows")
    # What the root itself may grant so many times is no gift for the one in the middle.
    root = Delegation(Policy("ask", delegate=[delegable(["Bash(npm publish)"], count=5)]), GROUND)
    middle = Delegation(Policy("autonomous"), GROUND, [root])
    assert isinstance(middle.grant(bash("npm publish"), folder=CHILD, age=0, used={}), Refused)


# --- our own tools


@pytest.mark.parametrize("delegate", [None, []], ids=str)
def test_running_others_is_bookkeeping_where_a_session_may(delegate: list[Any] | None) -> None:
    ground = replace(GROUND, servers=("bridle",))
    call = Call("mcp__bridle__claudecode_create", {"working_dir": "/home/me/.bridle/x"})
    for preset in ("ask", "read-only", "plan", "edits", "autonomous"):
        policy = Policy(preset, delegate=delegate)
        assert told(policy.on(ground).judge(call)) == "allow"
        assert told(Delegation(policy, ground).ceiling(call, FOLDER)) == "allow"
    for tool in ("mcp__bridle_x__y", "mcp__bridlex__y", "mcp__bridle", "mcp__other__bridle__x"):
        assert told(Policy("ask").on(ground).judge(Call(tool, {}))) == "ask"
    assert told(Policy("ask").on(GROUND).judge(call)) == "guard"
    assert told(Policy("ask").on(GROUND).judge(Call("mcp__bridle__x", {}))) == "ask"
    denied = Policy("ask", deny=["mcp__bridle__claudecode_create"], ask=["mcp__bridle__x"])
    assert told(denied.on(ground).judge(call)) == "deny"
    assert told(denied.on(ground).judge(Call("mcp__bridle__x", {}))) == "ask"
