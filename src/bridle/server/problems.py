"""What a caller is told when something can't be done: problem details (RFC 9457).

Owns the words for every error that can reach a route. `code` is for programs and never changes;
`detail` says what is wrong, `remedy` what to do about it.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Struct, UnsetType

MEDIA_TYPE = "application/problem+json"


class ProblemDetails(Struct, kw_only=True, frozen=True):
    """The body of every answer that is an error."""

    #: A reference to the page that explains the code.
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
