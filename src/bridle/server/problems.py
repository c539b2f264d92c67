"""What a caller is told when something can't be done: problem details (RFC 9457).

Owns its shape. `code` is for programs and never changes; `detail` says what is wrong, `remedy` what
to do about it. `answers` finds the words for an error, `troubles` has those for Bridle's own.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

MEDIA_TYPE = "application/problem+json"
#: A name, not an address: docs/api.md explains each code.
TYPE = "urn:bridle:problem:"


class ProblemDetails(Struct, kw_only=True, frozen=True):
    """The body of every answer that is an error."""

    #: The code again, as a name that is one of a kind.
    type: str
    title: str
    status: int
    code: str
    detail: str
    remedy: str
    #: What a program may want to know beside: the approval as it was decided, for example.
    about: dict[str, Any] | UnsetType = UNSET


class Problem(Exception):
    """Raised in a route: the caller is told just this."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        remedy: str,
        about: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.remedy = remedy
        self.about = about
        self.headers = headers or {}

    @property
    def body(self) -> bytes:
        """What is answered."""
        return msgspec.json.encode(
            ProblemDetails(
                type=f"{TYPE}{self.code}",
                title=self.code.replace("_", " ").capitalize(),
                status=self.status,
                code=self.code,
                detail=self.detail,
                remedy=self.remedy,
                about=self.about or UNSET,
            ),
            enc_hook=str,
        )


#: An ordinary word: what has digits, points or colons in it is somebody's name.
_WORD = re.compile(r"[a-z]+(?:['\u2019-][a-z]+)*(?=,? |$)")


def sentence(words: str) -> str:
    """With a full stop, and a capital letter unless it begins with a name."""
    text = words.strip()
    start = text[:1].upper() if _WORD.match(text) else text[:1]
    return f"{start}{text[1:]}" + ("" if text.endswith((".", "!", "?")) else ".")
