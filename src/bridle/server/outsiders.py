"""Tokens of sessions whose process is not ours: neither outlives the other.

Owns the making of both, and that they end together, also where the server was killed in between.
The session is the supervisor's, the token is the `tokens`'.
"""

from __future__ import annotations

from ..approvals import Person
from ..errors import NotPossible, UnknownSession
from ..supervisor import Supervisor
from ..supervisor.states import is_live
from .access import Role
from .given import folder_of, name_of
from .house import House
from .shapes.tokens import NewExternal
from .tokens import Token

_ROLES: dict[str, Role] = {"root": "agent", "permit": "permit"}
REVOKED = "its token was revoked"


async def admit(house: House, name: str, given: NewExternal, by: Person) -> tuple[Token, str]:
    """A session for somebody elsewhere, and the token by which they are known; its text."""
    record = await house.supervisor.create_external(
        kind=given.kind,
        name=name_of(name),
        folder=folder_of(given.folder),
        by=by,
        policy=await house.policies.given(given.policy),
        limits=given.limits,
    )
    try:
        return await house.tokens.create(_ROLES[given.kind], name, record.id)
    except BaseException:
        await house.supervisor.stop(record.id, words="its token could not be made")
        raise


async def shut_out(house: House, session: str) -> None:
    """The session has ended, or is gone: its tokens count no more."""
    for token in house.tokens.of_session(session):
        await house.tokens.revoke(token)


async def stop_with(house: House, token: Token, by: str) -> None:
    """The token was taken away: if it was of one elsewhere, that has ended."""
    supervisor = house.supervisor
    if not token.session or supervisor.is_asleep:  # then the next server does it
        return
    try:
        if supervisor.get(token.session).external:
            await supervisor.stop(token.session, by=by, words=REVOKED)
    except (UnknownSession, NotPossible):
        return  # it has ended


def counts(token: Token, supervisor: Supervisor) -> bool:
    """Whether there is still somebody whom this token is of."""
    if not token.session:
        return True
    try:
        record = supervisor.get(token.session)
    except UnknownSession:
        return False
    return not record.external or is_live(record.state)


async def match_tokens(house: House) -> None:
    """After a start: what one who was killed had not come to."""
    for token in house.tokens.list():
        if not counts(token, house.supervisor):
            await house.tokens.revoke(token)
    for record in house.supervisor.list(lambda one: one.external is not None):
        if is_live(record.state) and not house.tokens.of_session(record.id):
            await house.supervisor.stop(record.id, words=REVOKED)
