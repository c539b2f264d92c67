"""Which server the command talks to: the one that is named, the home's own, or the home itself.

Owns the search: `BRIDLE_URL` and `BRIDLE_TOKEN`, then the socket in the home, then (for what only
reads or administrates) the application in this very process, over a supervisor that is asleep.
"""

from __future__ import annotations

import os
import socket
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

# httpx has a command of its own, which loads all of rich; it does without if that is not there.
if "httpx" not in sys.modules:
    sys.modules["httpx._main"] = None  # type: ignore[assignment]

import httpx

from ...config import Settings
from ...errors import HomeInUse
from ...home.address import read_address
from ..errors import Misused, NoServer
from .client import Client

SOCKET = "bridle.sock"
#: The name by which a server is called over its socket.
LOCAL = "http://localhost"


@asynccontextmanager
async def open_client(settings: Settings, *, offline: bool = False) -> AsyncIterator[Client]:
    """NoServer if there is none, unless `offline` says that the home itself will do."""
    if settings.url:
        async with _over_url(settings.url, settings) as client:
            yield client
    elif answers(path := socket_of(settings.home)):
        async with _over_socket(path, settings) as client:
            yield client
    elif offline:
        async with _in_process(settings) as client:
            yield client
    else:
        raise NoServer


def socket_of(home: Path) -> Path:
    """Where the home's own server listens: elsewhere, if the home has too long a path for that."""
    told = read_address(home)
    return Path(told.socket) if told else home / SOCKET


def answers(path: Path) -> bool:
    """Whether somebody of ours listens there: a server that was killed leaves its socket behind."""
    if not is_ours(path):
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(2)
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True


def is_ours(path: Path) -> bool:
    """Whether nobody else can have put this socket there: a name that a server has left in a folder
    for all may be another user's by now."""
    try:
        folder, at, found = path.parent.stat(), path.parent.lstat(), path.lstat()
    except OSError:
        return False
    owners = {folder.st_uid, at.st_uid, found.st_uid}
    is_theirs = folder.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return owners <= {os.geteuid(), 0} and not is_theirs and stat.S_ISSOCK(found.st_mode)


@asynccontextmanager
async def _over_url(url: str, settings: Settings) -> AsyncIterator[Client]:
    parts = urlsplit(url)
    if parts.scheme == "unix":
        async with _over_socket(Path(parts.path), settings) as client:
            yield client
        return
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Misused(f"{url} is no server's address", "it begins with http://, https:// or unix:")
    headers = {"Authorization": f"Bearer {settings.token}"} if settings.token else {}
    # A proxy of the environment must not see a token that is for this machine alone.
    is_local = parts.hostname in ("127.0.0.1", "::1", "localhost")
    base = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
    async with httpx.AsyncClient(
        base_url=base,
        headers=headers,
        timeout=settings.timeout,
        trust_env=not is_local,
        verify=parts.scheme == "https",
    ) as http:
        yield Client(http, base)


@asynccontextmanager
async def _over_socket(path: Path, settings: Settings) -> AsyncIterator[Client]:
    # To read the certificates of all authorities takes 20 ms, and there is nothing to verify.
    transport = httpx.AsyncHTTPTransport(
        uds=str(path), verify=False, limits=httpx.Limits(max_connections=None)
    )
    async with httpx.AsyncClient(
        transport=transport, base_url=LOCAL, timeout=settings.timeout, trust_env=False
    ) as http:
        yield Client(http, str(path))


@asynccontextmanager
async def _in_process(settings: Settings) -> AsyncIterator[Client]:
    from ...server.access import Caller
    from ...server.app import make_app
    from ...server.house import open_house
    from ...server.inside import check_unknown, launches_outside
    from ...supervisor import open_supervisor
    from ..people import person_here

    # A server would know it by its process, and not let it in as a person.
    launches = await launches_outside(settings.home)
    try:
        async with (
            open_supervisor(settings.home, is_asleep=True) as supervisor,
            open_house(settings.home, supervisor) as house,
        ):
            check_unknown(settings.home, launches, supervisor)
            app = make_app(house, Caller(role="person", name=person_here(), via="terminal"))
            transport = httpx.ASGITransport(app, raise_app_exceptions=False)  # type: ignore[arg-type]
            async with httpx.AsyncClient(transport=transport, base_url=LOCAL) as http:
                yield Client(http, f"{settings.home} (no server is up)", is_offline=True)
    except HomeInUse as error:
        raise NoServer(
            f"{error.home} is in use by process {error.pid}, which answers no commands",
            "end it, or start a server in its place with `bridle up`",
        ) from error
