"""What an agent is to be told, as it is written down."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TypeAlias
from uuid import UUID

from msgspec import Raw

from ..errors import InvalidLaunch
from ..ids import new_uuid
from ..policy.policy import Policy
from ..protocol.blocks import KnownBlock
from ..protocol.outbound import prompt_line
from ..session.inline_commands import check_prompt
from ..views.stream import Created, Prompted
from .delegations import ground_under
from .means import Means
from .record import SessionRecord

#: What an agent can be told: text, or blocks with texts among them.
Said: TypeAlias = str | Sequence[KnownBlock | str]


def prompted(
    prompt: Said, now: float, by: str, uuid: str | None = None, *, is_verbatim: bool = False
) -> Prompted:
    """`is_verbatim`: the CLI reads no files and runs no commands that are named in it."""
    uuid = checked_uuid(uuid) if uuid else new_uuid()
    line = prompt_line(prompt, uuid=uuid, is_verbatim=is_verbatim)
    return Prompted(uuid=uuid, line=Raw(line.rstrip(b"\n")), at=now, by=by)


async def check_commands(
    means: Means, record: SessionRecord | Created, prompt: Said | None, policy: Policy
) -> None:
    """InvalidRequest for a slash command that would run what the policy forbids."""
    ground = ground_under(means, record, policy)
    await asyncio.to_thread(check_prompt, prompt, ground, policy.on(ground).judge)


def checked_uuid(given: str) -> str:
    """A name that the caller has made up: of the same form as ours."""
    try:
        if str(UUID(given)) == given:
            return given
    except ValueError:
        pass
    raise InvalidLaunch(f"{given[:80]!r} is no uuid in lower case")
