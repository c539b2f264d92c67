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
from ..session.folder import survey_of
from ..session.policies import in_force
from .charge import Charge
from .means import Means


class Named(Struct, frozen=True):
    """A policy that is kept under a name, elsewhere."""

    name: str
    policy: Policy


#: A preset's name, a file, or a policy.
PolicyGiven: TypeAlias = str | os.PathLike[str] | Policy | Named


def policy_of(given: PolicyGiven, spec: LaunchSpec) -> Policy:
    """With the rules that the launch's own options mean, and those of its folder: what the folder
    denies, or wants asked, holds as well, whatever becomes of those files."""
    policy = in_force(given.policy if isinstance(given, Named) else given, spec).policy
    return policy.with_rules(*survey_of(spec.cwd or ".").rules)


def source_of(given: PolicyGiven) -> str:
    match given:
        case Named(name=name):
            return f"stored policy {name}"
        case Policy():
            return "a policy made in Python"
    return f"policy {given}"


async def put_under(means: Means, charge: Charge, given: PolicyGiven, by: Person) -> str:
    """From now on this one: written down, then in force. Gives its digest."""
    record = charge.record
    spec = LaunchSpec(cwd=record.folder, **record.spec)
    policy = await asyncio.to_thread(policy_of, given, spec)
    policies = Policies(means.journal, means.owners, means.now)
    source = source_of(given)
    await policies.apply(charge.id, policy.text, source=source, by=by, files=policy.files)
    # As it is read after a restart.
    charge.put_under(Policy.read(policy.text, policy.files))
    return policy.digest
