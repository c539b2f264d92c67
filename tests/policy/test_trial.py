"""A policy tried on calls of the past."""

from __future__ import annotations

from bridle.policy import Allowed, Call, Denied, Past, Policy, try_policy

from .grounds import GROUND, bash

JUDGE = Policy(allow=["Bash(ls:*)"], deny=["Bash(rm:*)"]).on(GROUND)


def test_it_counts_what_would_have_been_answered_and_what_differently() -> None:
    trial = try_policy(
        JUDGE,
        [
            Past(bash("ls"), "allow"),
            Past(bash("ls -la"), "deny"),
            Past(bash("rm x"), "deny"),
            Past(bash("rm y"), "allow"),
            Past(bash("ls src")),
            Past(bash("rm z"), "ask"),
            Past(bash("docker ps"), "allow"),
            Past(bash("docker rm"), "deny"),
            Past(Call("Read", {"file_path": "x"}), "allow"),
        ],
    )
    assert (trial.total, trial.answered) == (9, 7)
    assert [one.past.call.input["command"] for one in trial.differently] == ["ls -la", "rm y"]
    assert isinstance(trial.differently[0].verdict, Allowed)
    assert isinstance(trial.differently[1].verdict, Denied)
    assert str(trial) == "this would have answered 7 of 9; these 2 differently"


def test_nothing_tried_is_nothing_answered() -> None:
    trial = try_policy(JUDGE, [])
    assert (trial.total, trial.answered, trial.differently) == (0, 0, ())
    assert str(trial) == "this would have answered 0 of 0"


def test_asking_never_differs() -> None:
    trial = try_policy(Policy().on(GROUND), [Past(bash("ls"), "allow"), Past(bash("rm"), "deny")])
    assert (trial.answered, trial.differently) == (0, ())


def test_the_calls_may_come_one_by_one() -> None:
    assert try_policy(JUDGE, (Past(bash("ls")) for _ in range(500))).answered == 500
