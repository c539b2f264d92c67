"""Sessions that agents make: new ones, and forks. Each call makes one, however often it is made.

Owns how the arguments become a session's. What an agent may make is for the supervisor to say.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec.structs import asdict

from ..errors import UnknownSession
from ..policy.presets import NAMES
from ..supervisor import Limits, SessionRecord
from ..supervisor.kept_policies import kept_policy
from ..supervisor.policies import PolicyGiven
from .arguments import Create, Fork
from .calls import Call, Json, head
from .refusals import Refusal


async def create(call: Call, arguments: Create) -> Json:
    session = call.id()
    async with call.means.intents.turn(session):
        record = await _made_before(call, session) or await _create(call, arguments, session)
    return await _born(call, record)


async def _create(call: Call, given: Create, session: str) -> SessionRecord:
    parent = call.supervisor.get(call.caller)
    launch: dict[str, Any] = {
        "model": given.model,
        "system_prompt": given.system_prompt,
        "permission_mode": given.permission_mode,
        "allowed_tools": given.allowed_tools or None,
        "disallowed_tools": given.disallowed_tools or None,
    }
    return await call.supervisor.create(
        cwd=Path(parent.folder) / given.working_dir,
        by=call.agent,
        name=given.name,
        policy=await _policy(call, given.policy),
        limits=Limits(**asdict(given.limits)) if given.limits else None,
        asks_above=given.loopback_enabled,
        id=session,
        **{name: value for name, value in launch.items() if value is not None},
    )


async def _policy(call: Call, name: str | None) -> PolicyGiven | None:
    """A preset, or one that a person keeps under this name."""
    if name is None or name in NAMES:
        return name
    # Where there is none, the supervisor says what may be given.
    return await kept_policy(call.supervisor.journal, name) or name


async def fork(call: Call, arguments: Fork) -> Json:
    origin, session = call.named(arguments), call.id()
    async with call.means.intents.turn(session):
        record = await _made_before(call, session)
        if record is None:
            record = await call.supervisor.fork(
                origin.id,
                by=call.agent,
                name=arguments.new_name,
                at=arguments.node_id,
                prompt=arguments.prompt,
                id=session,
            )
    return await _born(call, record)


async def _made_before(call: Call, session: str) -> SessionRecord | None:
    """What the same call has made already, if it has."""
    try:
        return call.supervisor.get(session)
    except UnknownSession:
        pass
    found = await call.supervisor.journal.log.info(session)
    # One that has events and is no session was cut short at its birth: that is done again.
    if 0 < found.last_seq < found.first_seq:
        raise Refusal("gone", "this call has made a session, which was deleted since")
    return None


async def _born(call: Call, record: SessionRecord) -> Json:
    _, fold = await call.looked(record.id)
    return {
        "type": "created",
        "id": record.id,
        "session_id": record.id,
        "name": record.name,
        "head": head(fold.tail.place),
    }
