"""Which policy a session is under, as people give it: when it is made, and another one later.

Owns how what was given becomes a policy; that it is in force is a recorded act (`approvals`), and
what it means for a call is the gate's.
"""

from __future__ import annotations

import asyncio
import os
from typing import TypeAlias

from msgspec import Struct

from ..approvals import Person
from ..approvals.policies import Policies
from ..policy.policy import Policy
from ..process.spec import LaunchSpec
from ..process.stop import uncancelled
from ..session.folder import survey_of
from ..session.policies import in_force
from ..session.user_rules import user_rules
from .charge import Charge
from .means import Means
from .record import SessionRecord
from .sessions import Sessions
from .states import check_possible, refused


class Named(Struct, frozen=True):
    """A policy that is kept under a name, elsewhere."""

    name: str
    policy: Policy


#: A preset's name, a file, or a policy.
PolicyGiven: TypeAlias = str | os.PathLike[str] | Policy | Named


def policy_of(given: PolicyGiven, spec: LaunchSpec) -> Policy:
    """With the rules that the launch's own options mean, and those of its folder and its user: what
    their settings deny, or want asked, holds as well, whatever becomes of those files."""
    policy = in_force(given.policy if isinstance(given, Named) else given, spec).policy
    return policy.with_rules(*survey_of(spec.cwd or ".").rules, *user_rules(spec))


def source_of(given: PolicyGiven) -> str:
    match given:
        case Named(name=name):
            return f"stored policy {name}"
        case Policy():
            return "a policy made in Python"
    return f"policy {given}"


async def put_under(
    means: Means, sessions: Sessions, charge: Charge, given: PolicyGiven, by: Person
) -> SessionRecord:
    """From now on this one: written down, then in force. Gives the record that knows it."""
    record = charge.record
    _check_between_turns(charge)
    spec = LaunchSpec(cwd=record.folder, **record.spec)
    policy = await asyncio.to_thread(policy_of, given, spec)
    # Once it is written down it must be in force, whoever is still there to be told.
    work = _apply(means, sessions, charge, policy, source_of(given), by)
    seq = await uncancelled(work)
    return await sessions.wait(charge, lambda record: record.seq >= seq)


async def _apply(
    means: Means, sessions: Sessions, charge: Charge, policy: Policy, source: str, by: Person
) -> int:
    """Gives the number of an event of the session's by which it is applied."""
    again = Policy.read(policy.text, policy.files)  # as it is read after a restart
    policies = Policies(means.journal, means.owners, means.now)
    async with charge.changing:
        sessions.check_there(charge)
        _check_between_turns(charge)
        await policies.apply(charge.id, policy.text, source=source, by=by, files=policy.files)
        charge.put_under(again)
    return (await means.journal.log.info(charge.id)).last_seq


def _check_between_turns(charge: Charge) -> None:
    """Also of one that is paused or held by the service: a turn of it may be open."""
    state = charge.record.state
    check_possible("set policy", state, charge.id)
    if charge.is_in_turn:
        raise refused("set policy", state, charge.id)
