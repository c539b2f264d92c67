"""The first person's token, in the file `token` of the home.

Made at the first start. A file that is lost, changed or readable by others is replaced, and what
was in it counts no more.
"""

from __future__ import annotations

import logging
import os
import pwd
from functools import lru_cache
from pathlib import Path

from ..home.files import read_private, write_private
from .tokens import Token, Tokens

FILE = "token"

_log = logging.getLogger(__name__)


@lru_cache
def login_name(uid: int | None = None) -> str:
    """What this machine calls a user: who runs us, if no other is meant."""
    number = os.geteuid() if uid is None else uid
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:  # in a container there is often no such user
        return f"user {number}"


async def keep_first_token(home: Path, tokens: Tokens) -> Token:
    """The one in the file, or a new one."""
    text = (read_private(home / FILE) or "").strip()
    found = tokens.find(text, "token") if text else None
    olds = [one for one in tokens.list() if one.is_first and one != found]
    if found and found.is_first:
        for old in olds:  # one before it, which could not be deleted when it was replaced
            await tokens.revoke(old)
        return found
    if olds:
        _log.warning("%s was lost, changed or open to others: it is made anew", home / FILE)
    return await renew_first_token(home, tokens)


async def renew_first_token(home: Path, tokens: Tokens) -> Token:
    """A new one; those before it count no more."""
    olds = [one for one in tokens.list() if one.is_first]
    token, text = await tokens.create("person", login_name(), is_first=True)
    write_private(home / FILE, f"{text}\n")
    for old in olds:
        await tokens.revoke(old)
    return token
