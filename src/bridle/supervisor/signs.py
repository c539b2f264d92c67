"""What an agent tells of the service behind it: it refuses for a time, or wants a login. Pure."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from ..views import stream
from ..views.stream import Entry, Limited
from .states import Facts

LOGIN = ("authentication_failed", "billing_error", "oauth_org_not_allowed")
LIMIT = ("rate_limit", "overloaded")


class Well(Struct, frozen=True):
    """The service answers."""


class _Info(Struct, frozen=True, rename="camel"):
    status: str = ""
    resets_at: float | None = None


class _Line(Struct, frozen=True):
    error: str | None = None
    error_status: int | None = None
    retry_delay_ms: float = 0
    is_error: bool = False
    rate_limit_info: _Info = _Info()


class _Body(Struct):
    type: str = ""
    line: _Line = _Line()


_decode = msgspec.json.Decoder(_Body).decode

_READ = (
    b'"type":"rate_limit_event"',
    b'"type":"system/api_retry"',
    b'"type":"assistant"',
    b'"type":"result"',
)


def sign_in(entry: Entry) -> Limited | Well | None:
    """What one event tells; None for most."""
    if entry.kind != stream.SAID or entry.is_cut or not _may_tell(entry.body):
        return None
    try:
        body = _decode(entry.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    line, at = body.line, entry.at
    if body.type == "rate_limit_event":
        info = line.rate_limit_info
        return Limited(at=at, until=info.resets_at) if info.status == "rejected" else None
    if line.error in LOGIN or line.error_status == 401:
        return Limited(at=at, needs_login=True, words=line.error or "")
    if line.error in LIMIT or line.error_status in (429, 529):
        wait = line.retry_delay_ms / 1000 or None
        return Limited(at=at, until=at + wait if wait else None, words=line.error or "")
    return Well() if body.type == "result" and not line.is_error else None


def tells_more(limited: Limited, facts: Facts) -> bool:
    """Whether that is more than is known of a session already."""
    if facts.needs_login or limited.needs_login:
        return not facts.needs_login
    known = facts.limited_until
    return not facts.is_limited or (limited.until or 0) > (known or 0)


def _may_tell(body: bytes) -> bool:
    """Reading each line for it would cost more than all else that is done with one."""
    head = body[:160]
    if _READ[2] in head:
        return b'"error":' in body
    return any(type_ in head for type_ in _READ)
