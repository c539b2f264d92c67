"""What a session may delegate to those below it, and what those above it have set it for bounds.

Owns how records become that; what a delegation says of a call is the policy's (`delegation`).
"""

from __future__ import annotations

from msgspec.structs import replace

from ..approvals.policies import Policies
from ..policy.ceilings import REMEMBERED, Above
from ..policy.delegation import Delegation
from ..policy.policy import Policy
from ..policy.presets import Preset
from ..policy.rules import Rule, parse_rule
from ..policy.verdicts import Ground
from ..process.spec import LaunchSpec
from ..session.ground import ground_of
from ..session.policies import programs_of
from ..views.stream import Ceiling, Created
from .means import Means
from .record import SessionRecord

#: The MCP server by which agents run others: in sessions that have it, it is no stranger's.
SERVER = "bridle"


async def delegation_of(
    means: Means,
    session: SessionRecord | Ceiling,
    preset: Preset | None = None,
    child: SessionRecord | None = None,
) -> Delegation:
    """What it may delegate: now, of a session; as it was when one below it was made, of a
    ceiling. The one of a session has those above it in it; `preset` is the one that holds now,
    where that is stricter than its policy's. `child` is who is to have it: a server that is ours
    in one session may be a stranger's in another."""
    if isinstance(session, Ceiling):
        policy = await pinned(means, session.policy, session.guarded)
        return Delegation(policy, _ground_of_ceiling(means, session))
    policy = await policy_under(means, session)
    policy = policy.with_preset(preset or policy.preset)
    servers = _servers(child or session)
    above = [one.delegation for one in await above_of(means, session, servers)]
    ground = replace(ground_under(means, session, policy), servers=servers)
    return Delegation(policy, ground, above)


async def above_of(
    means: Means, record: SessionRecord, servers: tuple[str, ...] | None = None
) -> list[Above]:
    """Its bounds, the root's first. `servers` are those of ours, where a call is not its own."""
    found, ours = [], _servers(record) if servers is None else servers
    for ceiling in record.ceilings:
        policy = await pinned(means, ceiling.policy, ceiling.guarded)
        ground = replace(_ground_of_ceiling(means, ceiling), servers=ours)
        found.append(Above(ceiling.session, Delegation(policy, ground)))
    return found


async def policy_under(means: Means, record: SessionRecord) -> Policy:
    """The policy that a session is under, with what people had remembered to be denied to it."""
    policy = await pinned(means, record.policy, record.guarded)
    return policy.with_rules(*await _denied(means, record))


async def pinned(means: Means, digest: str, guarded: tuple[str, ...]) -> Policy:
    """A policy that was applied once. Many sessions are under the same one."""
    key = digest, guarded
    if key not in means.policies:
        policies = Policies(means.journal, means.owners, means.now)
        means.policies[key] = Policy.read(await policies.text(digest), guarded)
    return means.policies[key]


def ground_under(means: Means, record: SessionRecord | Created, policy: Policy) -> Ground:
    """Where a session stands, under this policy."""
    ground = ground_of(
        record.folder,
        also=folders_of(record),
        addresses=means.addresses,
        guarded=policy.files,
        programs=programs_of(LaunchSpec(cwd=record.folder, **record.spec), means.environ),
        plugins=tuple(map(str, record.spec.get("plugin_dirs", ()))),
        **record.homes,
    )
    return replace(ground, servers=_servers(record))


def folders_of(record: SessionRecord | Created) -> tuple[str, ...]:
    """The folders beside its own that it was started with."""
    return tuple(map(str, record.spec.get("add_dirs", ())))


def _ground_of_ceiling(means: Means, ceiling: Ceiling) -> Ground:
    return ground_of(
        ceiling.folder,
        also=ceiling.also,
        addresses=means.addresses,
        guarded=ceiling.guarded,
        programs=(),
        plugins=(),
        **ceiling.homes,
    )


def _servers(record: SessionRecord | Created) -> tuple[str, ...]:
    return (SERVER,) if record.loopback else ()


async def _denied(means: Means, record: SessionRecord) -> list[Rule]:
    remembered = means.approvals.remembered
    own = await remembered.of_session(record.id) if record.has_rules else []
    found = [*await remembered.always(record.folder), *own]
    return [
        parse_rule(one.rule, "deny", f"{REMEMBERED} {one.id}")
        for one in found
        if one.behavior == "deny"
    ]
