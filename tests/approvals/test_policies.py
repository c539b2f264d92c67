"""A policy is applied by a person, pinned by its hash, and the trail says so."""

from __future__ import annotations

import pytest

from bridle.approvals import Agent, ApprovalError, MayNotDecide, Policies
from bridle.approvals.policies import POLICIES, policy_digest
from bridle.journal import Journal, verify
from bridle.journal.owner import Owners

from ..journal.engines import Engine
from .helpers import ANN, BOB, TurnedClock, events_in


async def test_the_last_policy_that_was_applied_is_in_force_after_a_restart_too(
    engine: Engine, clock: TurnedClock
) -> None:
    async with engine.open() as journal:
        policies = Policies(journal, Owners(journal.log), clock.now)
        assert await policies.applied("child") is None
        await policies.apply("child", "preset = 'ask'", source="a.toml", by=ANN)
        clock.turn(1)
        applied = await policies.apply("child", "preset = 'plan'", source="b.toml", by=BOB)
        assert applied.digest == policy_digest("preset = 'plan'")
    async with engine.open() as journal:
        policies = Policies(journal, Owners(journal.log), clock.now)
        assert await policies.applied("child") == applied
        assert await policies.applied("other") is None
        assert await policies.text(applied.digest) == "preset = 'plan'"
        assert {policy.source for policy in await policies.list()} == {"a.toml", "b.toml"}
        events = await events_in(journal)
        assert [event.kind for event in events] == ["policy.applied"] * 2
        assert all(event.seal for event in events)
        assert (await verify(journal, "child")).is_intact


async def test_the_same_text_is_kept_once(journal: Journal, clock: TurnedClock) -> None:
    policies = Policies(journal, Owners(journal.log), clock.now)
    first = await policies.apply("a", "x", source="a.toml", by=ANN)
    second = await policies.apply("b", "x", source="b.toml", by=BOB)
    assert first.digest == second.digest
    [kept] = await policies.list()
    assert (kept.by, kept.source) == (ANN, "a.toml")


async def test_a_text_that_was_changed_is_not_the_policy_that_was_applied(
    journal: Journal, clock: TurnedClock
) -> None:
    policies = Policies(journal, Owners(journal.log), clock.now)
    applied = await policies.apply("a", "deny", source="a.toml", by=ANN)
    record = await journal.records.get(POLICIES, applied.digest)
    assert record
    forged = record.value.replace(b"deny", b"allow")
    await journal.records.put(POLICIES, applied.digest, forged, record.revision)
    with pytest.raises(ApprovalError, match="was changed"):
        await policies.text(applied.digest)
    with pytest.raises(ApprovalError, match="was changed"):
        await policies.apply("b", "deny", source="a.toml", by=ANN)
    with pytest.raises(ApprovalError, match="is not there"):
        await policies.text("0" * 64)


async def test_only_a_person_applies_a_policy(journal: Journal, clock: TurnedClock) -> None:
    policies = Policies(journal, Owners(journal.log), clock.now)
    with pytest.raises(MayNotDecide):
        await policies.apply("a", "x", source="", by=Agent("root"))
    assert await policies.list() == []
