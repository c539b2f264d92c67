"""One request and its answer: sent, decoded, and told in words where it is a refusal.

Owns what is common to all of them; where the server is, is found by `find`, and what can be asked
is in `client`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from ...server.shapes.pages import Page
from ..errors import CommandError, NoServer, Refused
from . import sse

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

PREFIX = "/api/v1"
#: Before what was broken off is asked again.
PAUSES = (0.2, 0.4, 0.8, 1.6)

#: What stands behind the question mark; a list is the same name several times.
Params: TypeAlias = Mapping[str, str | Sequence[str]]


class _Problem(Struct):
    """Problem details, as far as a person is told of them."""

    detail: str
    remedy: str = ""
    code: str = ""
    about: dict[str, Any] = {}


class _Broken(NoServer):
    """It had begun, and nobody knows how far it came."""


class Talk:
    """A way to one server. `place` is where that is, for people."""

    def __init__(self, http: httpx.AsyncClient, place: str, *, is_offline: bool = False) -> None:
        self.http = http
        self.place = place
        #: There is no server: the home itself is asked, and nothing can be followed or started.
        self.is_offline = is_offline

    async def ask(
        self,
        method: str,
        path: str,
        shape: type[T],
        *,
        body: object = None,
        params: Params | None = None,
        key: str = "",
    ) -> T:
        """The answer as `shape` has it. `key` makes a repeated request count once."""
        answer = await self.send(method, path, body=body, params=params, key=key)
        try:
            return msgspec.json.decode(answer, type=shape)
        except msgspec.MsgspecError as error:
            raise CommandError(
                f"the server's answer to {method} {path} can't be read: {error}",
                "use a `bridle` of the server's own version (`bridle version`)",
            ) from error

    async def send(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        params: Params | None = None,
        key: str = "",
    ) -> bytes:
        """The answer as it is; a refusal is raised. What can be asked twice without harm is, if the
        connection breaks: a server that is restarted is back within seconds."""
        headers = {"Content-Type": "application/json"} if body is not None else {}
        if key:
            headers["Idempotency-Key"] = key
        content = msgspec.json.encode(body) if body is not None else None
        pauses = list(PAUSES) if key or method == "GET" else []
        broken: NoServer | None = None
        while True:
            try:
                return await self._once(method, path, content, params, headers)
            except _Broken as error:
                broken = error
            except NoServer as error:
                broken = broken and error
                if broken is None:
                    raise
            if not pauses:
                raise broken
            await asyncio.sleep(pauses.pop(0))

    async def _once(
        self,
        method: str,
        path: str,
        content: bytes | None,
        params: Params | None,
        headers: Mapping[str, str],
    ) -> bytes:
        import httpx

        try:
            answer = await self.http.request(
                method, PREFIX + path, content=content, params=params, headers=headers
            )
        except httpx.TimeoutException as error:
            raise CommandError(
                f"the server at {self.place} did not answer in time",
                "try again, or give it longer with BRIDLE_TIMEOUT",
            ) from error
        except httpx.ConnectError as error:
            raise self._nobody() from error
        except httpx.HTTPError as error:
            words = f"the connection to {self.place} broke: {error or type(error).__name__}"
            raise _Broken(words, "see with `bridle ps` whether it was done") from error
        check(answer)
        return answer.content

    def _nobody(self) -> NoServer:
        words = f"no server answers at {self.place}"
        if self.place.startswith("http"):  # somebody else's, perhaps on another machine
            return NoServer(words, "see whether it runs, and whether --url or BRIDLE_URL is right")
        return NoServer(words)

    async def pages(self, path: str, shape: type[T], where: Params) -> AsyncIterator[T]:
        """All items of a list, part by part."""
        after: str | None = None
        while True:
            params = {**where, "limit": "500"} | ({"after": after} if after else {})
            page: Page[T] = await self.ask("GET", path, Page[shape], params=params)  # type: ignore[valid-type]
            for item in page.items:
                yield item
            after = page.next
            if not after:
                return

    def follow(
        self,
        path: str,
        params: Mapping[str, str],
        last_id: str = "",
        on_break: Callable[[str], None] = lambda _: None,
    ) -> AsyncIterator[sse.ServerEvent]:
        """Server-sent events, over breaks."""
        if self.is_offline:
            raise NoServer("nothing can be followed: no server is up")

        def opened(headers: Mapping[str, str]) -> AsyncIterator[bytes]:
            return sse.stream_of(self.http, PREFIX + path, params, headers)

        return sse.follow(opened, last_id, on_break)


def check(answer: httpx.Response) -> None:
    """Raise what the server refused, in its own words."""
    if answer.status_code >= 400:
        refuse(answer.status_code, answer.content)
    if answer.status_code >= 300:
        refuse(answer.status_code, b"")


def refuse(status: int, body: bytes) -> NoReturn:
    try:
        problem = msgspec.json.decode(body, type=_Problem)
    except msgspec.MsgspecError:
        problem = _Problem(f"the server answered with status {status}")
    raise Refused(status, problem.code, problem.detail, problem.remedy, problem.about)
