"""Which call it is: a name that a client may give to a call, so that it has its effect once however
often it is sent. Owns where it stands, and what may stand there."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from ...ids import new_token

#: In the `_meta` of a call's parameters.
NAME = "bridle/requestId"
LONGEST = 1000


class NoKey(ValueError):
    """What stands there can be no name of a call."""


def key_in(meta: Any) -> str:
    """The name that was given, or a new one: then it is a call of its own."""
    if meta is None:
        return new_token(16)
    if not isinstance(meta, Mapping):
        raise NoKey("`_meta` must be an object")
    given = meta.get(NAME)
    if given is None:
        return new_token(16)
    if not isinstance(given, str | int) or isinstance(given, bool) or len(str(given)) > LONGEST:
        raise NoKey(f"`_meta` {NAME!r} must be a text of at most {LONGEST} characters")
    # Its own kind: it must not be taken for one that came by a pipe.
    return f"http:{sha256(str(given).encode('utf-8', 'surrogatepass')).hexdigest()}"
