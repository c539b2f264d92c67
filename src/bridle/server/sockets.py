"""The two sockets of a server: one for TCP, and one in the home for its owner.

Owns how they are bound, and that nobody else can reach the second. Does not listen for anybody: a
socket of this module is given to the server.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

from .errors import AddressInUse, AddressRefused

SOCKET = "bridle.sock"
BACKLOG = 512
#: The longest path of a socket, in bytes, that every system takes.
LONGEST = 103


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches it."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@contextmanager
def bound_tcp(host: str, port: int, *, allow_remote: bool = False) -> Iterator[socket.socket]:
    """Listens from now on, so that nobody else takes the port; who connects waits for the server.

    AddressInUse, AddressRefused.
    """
    if not is_loopback(host) and not allow_remote:
        raise AddressRefused(
            host,
            "other machines could reach it, and what they say would not be encrypted;"
            " if that is meant, say so with --allow-remote (docs/security.md)",
        )
    try:
        family, kind, _, _, name = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (socket.gaierror, UnicodeError) as error:
        raise AddressRefused(host, f"it is no address of this machine ({error})") from None
    # With its protocol: asyncio has small answers sent at once only where it knows that it is TCP.
    with socket.socket(family, kind, socket.IPPROTO_TCP) as listener:
        # A port on which old connections still come to their end is free.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        try:
            listener.bind(name)
            listener.listen(BACKLOG)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise AddressInUse(host, port) from None
            raise AddressRefused(host, f"port {port}: {os.strerror(error.errno or 0)}") from None
        yield listener


@contextmanager
def bound_socket(home: Path) -> Iterator[socket.socket]:
    """The socket in the home, or in a folder beside where that can't be. One who asks for it must
    have the home's lock: what is there already is a dead server's."""
    path = home / SOCKET
    listener = None
    if len(os.fsencode(path)) <= LONGEST:
        with suppress(OSError):  # some file systems have no sockets
            listener = _listening(path)
    if listener is None:
        path = _private(_short_folder(home)) / SOCKET
        listener = _listening(path)
    with listener:
        made = path.stat(follow_symlinks=False)
        try:
            yield listener
        finally:
            with suppress(OSError):
                if path.stat(follow_symlinks=False).st_ino == made.st_ino:
                    path.unlink()
                    if path.parent != home:
                        path.parent.rmdir()


def _listening(path: Path) -> socket.socket:
    with suppress(FileNotFoundError):
        path.unlink()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # Nobody can connect before it listens, and by then it is ours alone.
        listener.bind(os.fspath(path))
        path.chmod(0o600)
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def addresses_of(home: Path, host: str, port: int) -> tuple[str, ...]:
    """All by which a server may be reached."""
    return (f"{host}:{port}", str(home / SOCKET), str(_short_folder(home) / SOCKET))


def _short_folder(home: Path) -> Path:
    """Of a short path, the same each time for one home."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "") if sys.platform == "linux" else ""
    digest = sha256(os.fsencode(home.resolve())).hexdigest()[:12]
    name = f"bridle-{os.geteuid()}-{digest}"
    usual = [Path(runtime)] if runtime and Path(runtime).is_dir() else []
    for above in (*usual, Path(tempfile.gettempdir())):
        if len(os.fsencode(above / name / SOCKET)) <= LONGEST:
            return above / name
    return Path("/tmp") / name


def _private(folder: Path) -> Path:
    """The folder, made for us alone."""
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.stat(follow_symlinks=False)
    is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    if not is_ours or found.st_mode & 0o077:
        raise AddressRefused(str(folder), "somebody else has made it, or can reach it; remove it")
    return folder
