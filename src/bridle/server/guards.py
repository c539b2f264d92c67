"""What a request must look like to be let in at all, whoever sends it.

Owns the checks against other web pages: by its name (DNS rebinding), its origin and its cookie
(forgery). Pure: it looks at headers, and raises a Problem.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from .problems import Problem

Scope = Mapping[str, Any]

SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
#: A name that no web page of elsewhere can have.
_PLAIN = re.compile(r"[a-z0-9_-]+(:\d+)?")


def header(scope: Scope, name: bytes) -> str | None:
    """A header that may be there once."""
    found = [value for key, value in scope["headers"] if key == name]
    if len(found) > 1:
        words = f"The header {name.decode().title()} is there more than once."
        raise Problem(400, "bad_request", words, "Send it once.")
    return str(found[0].decode("latin-1")) if found else None


class Names:
    """The names that this server answers to, with its port; `further` are given as a user has them,
    with or without a port."""

    def __init__(self, host: str, port: int, further: Iterable[str] = ()) -> None:
        self._port = port
        plain = {*LOOPBACK, host_name(host)}
        self._ours = {name.lower() for one in plain for name in self._with_port(one)}
        self._further = {name.lower() for one in further for name in (one, f"{one}:{port}")}

    def _with_port(self, name: str) -> tuple[str, ...]:
        # A browser leaves out the port that everybody knows.
        return (f"{name}:{self._port}", name) if self._port == 80 else (f"{name}:{self._port}",)

    def check_host(self, scope: Scope, *, is_local: bool) -> str:
        """The name by which we were called."""
        host = (header(scope, b"host") or "").lower()
        if is_local:
            if host in self._ours | self._further or _PLAIN.fullmatch(host) or self._is_loop(host):
                return host
        elif host in self._ours or host in self._further or host in self._addressed(scope):
            return host
        raise Problem(
            421,
            "foreign_host",
            f"This server is not called {host!r}." if host else "The header Host is missing.",
            "Call it by the address that `bridle up` printed. A further name can be set as"
            " `allowed_hosts`: docs/security.md.",
        )

    def _addressed(self, scope: Scope) -> tuple[str, ...]:
        """The very address that was called: an address is nobody's name."""
        server = scope.get("server")
        return self._with_port(host_name(server[0])) if server and server[1] else ()

    @staticmethod
    def _is_loop(host: str) -> bool:
        return host.rpartition(":")[0] in LOOPBACK or host in LOOPBACK

    def check_origin(self, scope: Scope, host: str) -> None:
        """If a page sends it, it is one of ours: from the very name by which we were called."""
        origin = header(scope, b"origin")
        if origin is None or self._is_own(scope, origin.lower(), host):
            return
        raise Problem(
            403,
            "foreign_origin",
            f"A page of {origin} may not ask this server.",
            "Open the server's own page. Programs send no Origin.",
        )

    def _is_own(self, scope: Scope, origin: str, host: str) -> bool:
        if origin == "null":  # so a form says whose page says no more than it must (no-referrer)
            return header(scope, b"sec-fetch-site") == "same-origin"
        schemes = ("http", "https") if host in self._further else ("http",)
        return origin in [f"{scheme}://{host}" for scheme in schemes]


def check_forgery(scope: Scope) -> None:
    """A browser sends our cookie along with what a page of another port of this machine asks for:
    that a request is our own page's must show in it."""
    site = header(scope, b"sec-fetch-site")
    if scope["method"] not in SAFE_METHODS:
        is_ours = site == "same-origin" or (
            site is None and header(scope, b"origin") not in (None, "null")
        )
    else:
        # To go to a page tells nothing to the one where the link was.
        is_visit = header(scope, b"sec-fetch-mode") == "navigate"
        is_ours = site in (None, "none", "same-origin") or is_visit
    if not is_ours:
        raise Problem(
            403,
            "foreign_origin",
            "Another page wants this in your name.",
            "Use the server's own page, or a token.",
        )


def host_name(host: str) -> str:
    """As it stands in an address."""
    return f"[{host}]" if ":" in host else host
