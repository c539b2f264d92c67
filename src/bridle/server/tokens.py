"""What proves who somebody is: tokens for programs, and logins for browsers.

Owns their records (of the text only its SHA-256 and its end) and an index in memory, so that a
request costs no read. Does not know how a text came in; `token_file` keeps the first person's.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from hashlib import sha256
from typing import Literal, TypeAlias

from msgspec import Struct

from ..errors import WrongRevision
from ..ids import new_token
from ..journal import Journal
from ..journal.events import Durability
from .access import Caller, Role, Via

BUCKET = "tokens"
LOGIN_SECONDS = 30 * 24 * 3600.0
#: How much of a text is kept, so that its owner can tell which it is.
TAIL = 4

#: `login` is a browser's cookie: it is no bearer's token, and a token is no cookie.
Kind: TypeAlias = Literal["token", "login"]

_PREFIXES: dict[Role, str] = {
    "person": "bridle_p_",
    "agent": "bridle_a_",
    "reader": "bridle_r_",
    "permit": "bridle_m_",
}
_LOGIN_PREFIX = "bridle_l_"


class Token(Struct, frozen=True, kw_only=True):
    """The record of one. `session` is an agent's own."""

    id: str
    kind: Kind
    role: Role
    name: str
    session: str = ""
    digest: str
    tail: str
    created_at: float
    expires_at: float | None = None
    #: Whether its text is in the file of the home.
    is_first: bool = False
    #: Whether it is of a browser whose process can't be seen from here.
    is_unseen: bool = False

    def caller(self, via: Via) -> Caller:
        return Caller(role=self.role, name=self.name, via=via, session=self.session, token=self.id)


class Tokens:
    """All of a home. Belongs to the one who has the home's lock."""

    def __init__(self, journal: Journal, now: Callable[[], float]) -> None:
        self._bucket = journal.bucket(BUCKET, Token)
        self._now = now
        self._by_digest: dict[str, Token] = {}
        self._revisions: dict[str, int] = {}
        #: Taken away, by their ids, and stored all the same: to delete them has failed.
        self._lingering: dict[str, Token] = {}

    async def load(self) -> None:
        for document in await self._bucket.list():
            self._by_digest[document.value.digest] = document.value
            self._revisions[document.key] = document.revision

    # --- looking

    def find(self, text: str, kind: Kind) -> Token | None:
        """Whose text this is, if anybody's."""
        digest = digest_of(text)
        found = self._by_digest.get(digest)
        # That the text was hashed says nothing of it by the time that the look takes.
        if found is None or not hmac.compare_digest(found.digest, digest) or found.kind != kind:
            return None
        return None if self._is_over(found) else found

    def list(self) -> list[Token]:
        """Those that count, the oldest first."""
        found = (one for one in self._by_digest.values() if not self._is_over(one))
        return sorted(found, key=lambda one: (one.created_at, one.id))

    def of_session(self, session: str) -> tuple[Token, ...]:
        """Those of one agent; also one that could not be deleted when it was taken away."""
        every = (*self.list(), *self._lingering.values())
        return tuple(one for one in every if one.session == session and session)

    def revocable(self, id_: str) -> Token | None:
        """One that can be taken away: also again, where it could not be deleted before."""
        found = next((one for one in self.list() if one.id == id_), None)
        return found or self._lingering.get(id_)

    def _is_over(self, token: Token) -> bool:
        return token.expires_at is not None and token.expires_at <= self._now()

    # --- making and taking away

    async def create(
        self, role: Role, name: str, session: str = "", *, is_first: bool = False
    ) -> tuple[Token, str]:
        """A new one, and its text, which nobody will ever see again."""
        text = _PREFIXES[role] + secrets.token_urlsafe(32)
        token = self._made(text, "token", role, name, session=session, is_first=is_first)
        return await self._kept(token), text

    async def log_in(self, name: str, *, is_unseen: bool = False) -> tuple[Token, str]:
        """A browser's, for 30 days."""
        text = _LOGIN_PREFIX + secrets.token_urlsafe(32)
        expires_at = self._now() + LOGIN_SECONDS
        return await self._kept(
            self._made(text, "login", "person", name, expires_at=expires_at, is_unseen=is_unseen)
        ), text

    def _made(
        self,
        text: str,
        kind: Kind,
        role: Role,
        name: str,
        *,
        session: str = "",
        expires_at: float | None = None,
        is_first: bool = False,
        is_unseen: bool = False,
    ) -> Token:
        return Token(
            id=new_token(6),
            kind=kind,
            role=role,
            name=name,
            session=session,
            digest=digest_of(text),
            tail=text[-TAIL:],
            created_at=self._now(),
            expires_at=expires_at,
            is_first=is_first,
            is_unseen=is_unseen,
        )

    async def _kept(self, token: Token) -> Token:
        await self._forget_old()
        document = await self._bucket.create(token.id, token, Durability.POWER)
        self._by_digest[token.digest] = token
        self._revisions[token.id] = document.revision
        return token

    async def _forget_old(self) -> None:
        over = [one for one in self._by_digest.values() if self._is_over(one)]
        for token in [*over, *self._lingering.values()]:
            await self.revoke(token)

    async def revoke(self, token: Token) -> None:
        """From now on it is nobody's, also where that can't be written down just now: then it is to
        be tried again, and is, when the next one is made. Else a restart would let it in."""
        self._by_digest.pop(token.digest, None)
        revision = self._revisions.get(token.id)
        if revision is None:
            return
        was_tried = token.id in self._lingering
        self._lingering[token.id] = token
        try:
            await self._bucket.delete(token.id, revision, Durability.POWER)
        except WrongRevision:
            if not was_tried:  # else it was deleted then, and said to have failed
                raise
        self._lingering.pop(token.id, None)
        self._revisions.pop(token.id, None)


def digest_of(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
