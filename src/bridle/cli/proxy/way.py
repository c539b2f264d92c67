"""The server's side: where it is now, and one POST for each message.

Owns the finding (anew in every attempt, since a server that was restarted may be elsewhere), the
token, and what a refusal is in words. Whether something is sent again is the proxy's to decide.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec
from msgspec import Raw, Struct

from ...errors import BridleError
from ..client.find import LOCAL, is_ours, socket_of
from ..client.sse import Splitter
from ..errors import Misused
from .messages import Headers

if TYPE_CHECKING:
    import httpx

#: A server that has this message says something at least so often: a comment, if nothing else.
SILENCE_SECONDS = 120.0
CONNECT_SECONDS = 10.0
#: What a server answers that is overloaded, or just about to end or to begin.
_LATER = frozenset({429, 502, 503, 504})
_HEADERS = {
    "accept": "application/json, text/event-stream",
    "content-type": "application/json",
}


class Gone(BridleError):
    """No server has answered: it is not there, or has gone before its answer was whole."""


class Turned(BridleError):
    """The server does not want it, whoever sends it again. `error` is its own word for that, where
    it has spoken JSON-RPC."""

    def __init__(self, words: str, error: Raw | None = None) -> None:
        super().__init__(words)
        self.error = error


class Place(Struct, frozen=True):
    """`socket` is "" for a server that is reached by its address."""

    base: str
    socket: str = ""


class _Problem(Struct):
    """Problem details, or an error of JSON-RPC: whichever it is."""

    detail: str = ""
    remedy: str = ""
    error: Raw = Raw(b"")


class Way:
    """To `path` of the server of a home, or of the one that is named. `token` gives the text, and
    raises Turned if there is none any more."""

    def __init__(self, find: Callable[[], Place], path: str, token: Callable[[], str]) -> None:
        self._find, self._path, self._token = find, path, token
        self._open: dict[Place, httpx.AsyncClient] = {}
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Way:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def post(self, body: bytes, headers: Headers) -> AsyncGenerator[bytes, None]:
        """The messages that come back, until the reader has what it wants. Gone if they break off,
        Turned if it is not wanted."""
        import httpx

        place = self._find()
        given = {**_HEADERS, **headers, "authorization": f"Bearer {self._token()}"}
        client = await self._client(place)
        try:
            async with client.stream("POST", self._path, content=body, headers=given) as answer:
                if answer.status_code >= 300:
                    _refuse(answer.status_code, await answer.aread())
                if answer.headers.get("content-type", "").startswith("text/event-stream"):
                    splitter = Splitter()
                    async for data in answer.aiter_raw():
                        for event in splitter.add(data):
                            yield event.data
                elif content := await answer.aread():
                    yield content
                    raise Turned("the server's answer can't be read")
        except httpx.HTTPError as error:
            raise Gone(f"{error or type(error).__name__}") from error

    async def _client(self, place: Place) -> httpx.AsyncClient:
        """Calls that wait at another place come to their end there."""
        if place not in self._open:
            self._open[place] = await self._stack.enter_async_context(_client(place))
        return self._open[place]


def _client(place: Place) -> httpx.AsyncClient:
    import httpx

    # As many as there are calls: none may wait for another's end.
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=4)
    is_encrypted = place.base.startswith("https:")
    transport = httpx.AsyncHTTPTransport(
        uds=place.socket or None, verify=is_encrypted, limits=limits
    )
    timeout = httpx.Timeout(CONNECT_SECONDS, read=SILENCE_SECONDS)
    return httpx.AsyncClient(
        transport=transport, base_url=place.base, timeout=timeout, trust_env=False
    )


def at_home(home: Path) -> Callable[[], Place]:
    """The server of a home, by its socket: no other user can stand in its place there, as with a
    port that has become free."""

    def find() -> Place:
        path = socket_of(home)
        if not is_ours(path):
            raise Gone(f"no server of {home} is up")
        return Place(LOCAL, str(path))

    return find


def at_url(url: str) -> Callable[[], Place]:
    """The server that is named. Misused if that is no address."""
    parts = urlsplit(url)
    if parts.scheme == "unix":
        place = Place(LOCAL, parts.path)
    elif parts.scheme in ("http", "https") and parts.hostname:
        place = Place(url.rstrip("/"))
    else:
        raise Misused(f"{url} is no server's address", "it begins with http://, https:// or unix:")
    return lambda: place


def _refuse(status: int, body: bytes) -> None:
    if status in _LATER:
        raise Gone(f"the server answers with status {status}")
    try:
        problem = msgspec.json.decode(body, type=_Problem)
    except msgspec.MsgspecError:
        problem = _Problem()
    told = " ".join(filter(None, (problem.detail, problem.remedy)))
    words = UNKNOWN if status == 401 else told or _WORDS.get(status, f"the server answers {status}")
    raise Turned(words, problem.error if bytes(problem.error) else None)


#: In place of the server's own, which speak to a program.
UNKNOWN = (
    "the server does not know this token: it was revoked, its session has ended, or it is of"
    " another home; `bridle mcp list` says which there are, `bridle mcp token` makes one"
)
_WORDS: Mapping[int, str] = {
    404: "this server has no such door: it is of an older version. `bridle version` says which this"
    " is; end that one with `bridle down` and start another with `bridle up`",
    413: "this message is larger than the server takes: `max_body` in bridle.toml says how much",
}
