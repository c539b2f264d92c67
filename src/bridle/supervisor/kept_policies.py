"""Policies that people keep under a name, as they are stored. A session is never under the name: it
is under what the text said when it was given to it.

Owns the record and how it becomes a policy; who may change one is for the server.
"""

from __future__ import annotations

import re

from msgspec import Struct

from ..approvals import Person
from ..errors import InvalidPolicy
from ..journal import Journal
from ..policy.files import parse_policy
from ..policy.policy import Policy
from .policies import Named

BUCKET = "named-policies"
MOST_BYTES = 128 * 1024
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


class KeptPolicy(Struct, frozen=True, kw_only=True):
    text: str
    by: Person
    at: float


async def kept_policy(journal: Journal, name: str) -> Named | None:
    """The one of this name, if there is one."""
    if not NAME.fullmatch(name):
        return None
    found = await journal.bucket(BUCKET, KeptPolicy).get(name)
    return Named(name, parsed(name, found.value.text)) if found else None


def parsed(name: str, text: str) -> Policy:
    """What it says. It includes no files: there is no folder that they could be beside of."""
    if len(text.encode("utf-8", "surrogatepass")) > MOST_BYTES:
        reason = f"it has more than {MOST_BYTES >> 10} KB"
        raise InvalidPolicy(name, None, reason)
    # It is no file that the agent could change.
    return parse_policy(text, name).with_files(())
