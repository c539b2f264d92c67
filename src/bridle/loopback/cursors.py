"""Places in what happens in some sessions, as a word that an agent gives back.

Owns its form: for each session the head of its id and a number. It is no secret and opens nothing:
whatever is in it is checked like any other argument.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping

from .refusals import Refusal

_FORM = 1
_ONE = struct.Struct(">8sI")


def cursor_of(places: Mapping[str, int]) -> str:
    """`places` are numbers by session."""
    packed = b"".join(_ONE.pack(_head(session), place) for session, place in places.items())
    return base64.urlsafe_b64encode(bytes([_FORM]) + packed).decode().rstrip("=")


def places_in(cursor: str, sessions: list[str]) -> dict[str, int]:
    """The places in these sessions; Refusal if it is not of all of them."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        packed = base64.b64decode(padded, altchars=b"-_", validate=True)
        if packed[:1] != bytes([_FORM]):
            raise ValueError
        found = dict(_ONE.iter_unpack(packed[1:]))
        return {session: found[_head(session)] for session in sessions}
    except (ValueError, KeyError, struct.error):
        words = "this cursor is none that was given for these sessions; leave it out to go on"
        raise Refusal("invalid_cursor", words) from None


def _head(session: str) -> bytes:
    return bytes.fromhex(session.replace("-", "")[:16]).ljust(8, b"\0")
