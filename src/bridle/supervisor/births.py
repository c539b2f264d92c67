"""What a new session is given: its policy, settled by a person, and what its launches need.

Owns that; who may have one, and its place in the tree, is found elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ..approvals import Person
from ..approvals.policies import Policies
from ..errors import InvalidLaunch
from ..ids import new_uuid
from ..policy.policy import Policy
from ..process.spec import LaunchSpec
from ..session.folder import survey_of
from ..session.policies import homes_of, in_force
from ..views.stream import Created
from .environment import Value, resolve, secrets, sources
from .making import stored_spec
from .means import Means
from .record import SessionRecord

#: A preset's name, a file, or a policy.
PolicyGiven: TypeAlias = str | os.PathLike[str] | Policy


class Wish(Struct, frozen=True):
    """What somebody wants a session to be."""

    folder: str
    policy: PolicyGiven
    env: Mapping[str, Value]
    launch: Mapping[str, Any]


def wished(
    folder: str | os.PathLike[str],
    policy: PolicyGiven,
    env: Mapping[str, Value],
    launch: Mapping[str, Any],
) -> Wish:
    """InvalidLaunch for what no launch can have."""
    path = Path(folder).absolute()
    if not path.is_dir():
        raise InvalidLaunch(f"there is no folder {path}")
    return Wish(str(path), policy, env, stored_spec(launch))


async def settled(means: Means, wish: Wish, by: Person) -> Created:
    """A new session's id and facts, with its policy pinned."""
    session = new_uuid()
    given = secrets(wish.env)
    env = resolve(sources(wish.env), given, means.environ)
    spec = LaunchSpec(cwd=wish.folder, env=env, **wish.launch)
    force = in_force(wish.policy, spec)
    # What its folder denies, or wants asked, holds as well, whatever becomes of those files.
    policy = force.policy.with_rules(*survey_of(wish.folder).rules)
    policies = Policies(means.journal, means.owners, means.now)
    await policies.apply(session, policy.text, source=_source(wish.policy), by=by)
    means.secrets[session] = given
    inherited = means.environ if spec.inherit_env else {}
    homes = homes_of(replace(spec, env={**inherited, **env}, inherit_env=False))
    return Created(
        id=session,
        name="",
        folder=wish.folder,
        at=means.now(),
        spec=dict(wish.launch),
        env=sources(wish.env),
        policy=policy.digest,
        guarded=policy.files,
        homes={
            "home": homes["home"],
            "claude_home": homes["claude_home"],
            "bridle_home": str(means.home),
        },
        by=by.name,
    )


def _source(policy: PolicyGiven) -> str:
    return "a policy made in Python" if isinstance(policy, Policy) else f"policy {policy}"


async def forked(means: Means, was: SessionRecord, by: Person) -> Created:
    """The same for a session that begins where another one is."""
    session = new_uuid()
    policies = Policies(means.journal, means.owners, means.now)
    text = await policies.text(was.policy)
    await policies.apply(session, text, source=f"that of session {was.id}", by=by)
    means.secrets[session] = dict(means.secrets.get(was.id, {}))
    return Created(
        id=session,
        name="",
        folder=was.folder,
        at=means.now(),
        labels=was.labels,
        spec=was.spec,
        env=was.env,
        policy=was.policy,
        guarded=was.guarded,
        homes=was.homes,
        parent=was.parent,
        lineage=was.lineage,
        limits=was.limits,
        orphans=was.orphans,
        by=by.name,
        forked_from=was.id,
    )
