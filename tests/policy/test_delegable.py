"""What may be delegated, and what is for people alone: as policies write it, in files and kept."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridle.errors import InvalidPolicy, InvalidRule
from bridle.policy import InForce, Policy, parse_policy
from bridle.policy.delegable import MOST, delegable
from bridle.supervisor.kept_policies import parsed as kept
from tests.levels import tries

from .grounds import GROUND

WHOLE = """\
preset = "edits"
human_only = ["Bash(git push:*)"]

[[delegate]]
rules = ["Bash(npm test:*)", "Edit(./src/**)"]
count = 20
seconds = 3600
paths = ["./packages/**"]

[[delegate]]
rules = ["Read"]
"""


def test_a_file_says_what_may_be_delegated_and_what_is_for_people_alone() -> None:
    policy = parse_policy(WHOLE, "mine.toml")
    [people] = policy.human_only
    assert (people.text, people.behavior, people.source) == (
        "Bash(git push:*)",
        "ask",
        "mine.toml:2",
    )
    assert policy.delegate is not None
    first, second = policy.delegate
    assert [rule.text for rule in first.rules] == ["Bash(npm test:*)", "Edit(./src/**)"]
    assert [rule.source for rule in first.rules] == ["mine.toml:5", "mine.toml:5"]
    assert (first.count, first.seconds, first.paths) == (20, 3600, ("./packages/**",))
    assert (first.is_limited, second.is_limited) == (True, False)
    assert [rule.source for rule in second.rules] == ["mine.toml:11"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("delegate = 3", "p.toml:1: delegate is a list of tables"),
        ("[delegate]\nrules = []", "p.toml:1: delegate is a list of tables"),
        ("\n[[delegate]]\ncount = 1", "p.toml:2: an entry of delegate has rules"),
        ("[[delegate]]\nrules = []", "p.toml:2: an entry of delegate has rules"),
        ('[[delegate]]\nrules = "Read"', "p.toml:2: rules is a list of rules"),
        ('[[delegate]]\nrules = ["bash"]', "p.toml:2: 'bash' is no rule: the tool is called Bash"),
        (
            '[[delegate]]\nrules = ["Read"]\n\n[[delegate]]\nrules = ["Bash("]',
            "p.toml:5: 'Bash(' is no rule",
        ),
        ('[[delegate]]\nrules = ["Read"]\ncount = 0', "p.toml:3: count is a whole number above 0"),
        ('[[delegate]]\nrules = ["Read"]\ncount = 1.5', "p.toml:3: count is a whole number"),
        ('[[delegate]]\nrules = ["Read"]\ncount = true', "p.toml:3: count is a whole number"),
        ('[[delegate]]\nrules = ["Read"]\nseconds = nan', "p.toml:3: seconds is a number above 0"),
        ('[[delegate]]\nrules = ["Read"]\nseconds = -1', "p.toml:3: seconds is a number above 0"),
        ('[[delegate]]\nrules = ["Read"]\npaths = "./a"', "p.toml:3: paths is a list"),
        ('[[delegate]]\nrules = ["Read"]\npaths = [""]', "p.toml:3: a path is text"),
        ('[[delegate]]\nrules = ["Read"]\nallow = []', "p.toml:3: no such key 'allow' in delegate"),
        (
            '[[delegate]]\nrules = ["Read"]\nhuman_only = ["Bash"]',
            "p.toml:3: no such key 'human_only' in delegate: write it above the first",
        ),
        ('[[delegate]]\nrules = ["Read"]\nuntil = 1', "no such key 'until' in delegate: use rules"),
        ('human_only = "Bash"', "p.toml:1: human_only is a list of rules"),
        ('human_only = ["Bash", 3]', "p.toml: '3' is no rule"),
        ('delegate = [{rules = ["Bash("]}]', "p.toml:1: 'Bash(' is no rule"),
    ],
)
def test_a_mistake_is_told_with_its_file_and_line(text: str, told: str) -> None:
    with pytest.raises(InvalidPolicy) as raised:
        parse_policy(text, "p.toml")
    assert str(raised.value).startswith(told) or told in str(raised.value)


def test_the_first_file_that_speaks_of_delegating_decides_and_people_have_what_any_names() -> None:
    files = {"a.toml": '[[delegate]]\nrules = ["Bash"]', "b.toml": 'human_only = ["WebFetch"]'}
    main = 'include = ["a.toml", "b.toml"]\nhuman_only = ["Bash(git push:*)"]\n'
    policy = parse_policy(f"{main}delegate = []", "p.toml", files.__getitem__)
    assert policy.delegate == ()
    assert [rule.text for rule in policy.human_only] == ["Bash(git push:*)", "WebFetch"]
    policy = parse_policy(main, "p.toml", files.__getitem__)
    assert policy.delegate
    assert policy.delegate[0].rules[0].source == "a.toml:2"
    assert parse_policy("", "p.toml").delegate is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"rules": "Bash"},
        {"rules": []},
        {"rules": ["Bash("]},
        {"rules": ["Bash"], "paths": "./a"},
        {"rules": ["Bash"], "count": 0},
        {"rules": ["Bash"], "count": MOST + 1},
        {"rules": ["Bash"], "seconds": float("inf")},
    ],
    ids=str,
)
def test_what_is_no_entry_is_refused_in_python_as_well(wrong: dict[str, object]) -> None:
    with pytest.raises((InvalidPolicy, InvalidRule)):
        delegable(**wrong)  # type: ignore[arg-type]


def test_human_only_is_no_text() -> None:
    with pytest.raises(InvalidPolicy):
        Policy(human_only="Bash")


# --- as it is kept

OLD = '["edits",true,[["allow","Bash(npm test:*)"],["deny","Read(./secrets/**)"]]]'


def test_a_policy_with_neither_is_written_as_it_always_was() -> None:
    policy = Policy("edits", allow=["Bash(npm test:*)"], deny=["Read(./secrets/**)"])
    assert policy.text == OLD
    assert Policy.read(OLD).digest == policy.digest


def test_what_is_kept_says_the_same_when_it_is_read() -> None:
    policy = parse_policy(WHOLE, "mine.toml")
    again = Policy.read(policy.text)
    assert again.text == policy.text
    assert [entry.key for entry in again.delegate or ()] == [
        entry.key for entry in policy.delegate or ()
    ]
    assert [rule.text for rule in again.human_only] == ["Bash(git push:*)"]
    assert again.with_preset("ask").with_rules().delegate is again.delegate
    assert again.with_preset("ask").human_only == again.human_only


def test_no_copy_of_a_policy_loses_what_it_says() -> None:
    policy = parse_policy(WHOLE, "mine.toml")
    copies = [
        policy.with_files(()),
        policy.with_rules(),
        policy.without(policy.human_only[0]),
        policy.with_preset("edits"),
        InForce(policy, GROUND).policy,
        kept("team", WHOLE),
    ]
    assert {copy.digest for copy in copies} == {policy.digest}
    assert (policy.files, policy.with_files(()).files) == (("mine.toml",), ())


def test_nothing_to_delegate_is_something_else_than_nothing_said_of_it() -> None:
    assert Policy(delegate=[]).digest != Policy().digest
    assert Policy.read(Policy(delegate=[]).text).delegate == ()
    assert Policy.read(Policy(human_only=["Bash"]).text).delegate is None


@pytest.mark.parametrize(
    "text",
    [
        '["edits",true]',
        '["edits",true,[],{"delegate":3}]',
        '["edits",true,[],{"human":[]}]',
        '["edits",true,[],{},1]',
        '["edits",true,[],{"delegate":[{"rules":["Bash"],"more":1}]}]',
        '["edits",true,[],{"delegate":[{"rules":[]}]}]',
        '["edits",true,[],{"delegate":[{"rules":["Bash"],"count":0}]}]',
    ],
)
def test_a_text_that_says_more_than_is_known_is_no_policy(text: str) -> None:
    with pytest.raises(InvalidPolicy):
        Policy.read(text)


RULES = st.lists(
    st.sampled_from(["Bash(npm test:*)", "Edit(./src/**)", "Read", "mcp__x"]), min_size=1
)
ENTRIES = st.lists(
    st.builds(
        delegable,
        RULES,
        count=st.none() | st.integers(1, 100),
        seconds=st.none() | st.integers(1, 100) | st.floats(0.1, 100),
        paths=st.lists(st.sampled_from(["./a/**", "./b", "~/c"])),
    ),
    max_size=3,
)


@settings(max_examples=tries(50, 500), deadline=None)
@given(st.none() | ENTRIES, st.lists(st.sampled_from(["Bash(git push:*)", "WebFetch", "Edit"])))
def test_any_policy_is_read_as_it_was_written(
    entries: list[object] | None, people: list[str]
) -> None:
    policy = Policy("edits", delegate=entries, human_only=people)  # type: ignore[arg-type]
    again = Policy.read(policy.text)
    assert again.digest == policy.digest
    assert [e.key for e in again.delegate or ()] == [e.key for e in policy.delegate or ()]
