"""Bridle's home: whose it is, who can read it, what disk it is on, and who serves it."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import stat
from pathlib import Path

from ...journal.sqlite.place import NETWORK_FILE_SYSTEMS, file_system_of
from ..client.find import SOCKET, answers, socket_of
from ..tables import size
from .examination import Finding, Patient

#: Files that nobody else may read.
PRIVATE = ("token", SOCKET, "server.json", "journal.db")


def folder(patient: Patient) -> list[Finding]:
    home = patient.settings.home
    if not home.exists():
        return [Finding("home", "ok", f"{home} is not there yet: `bridle up` makes it")]
    if not home.is_dir():
        return [Finding("home", "fail", f"{home} is no folder", "give another one with --home")]
    status = home.stat()
    if status.st_uid != os.getuid():
        words = f"{home} belongs to another user ({status.st_uid})"
        return [Finding("home", "fail", words, "give a home of your own with --home")]
    if not os.access(home, os.W_OK):
        return [Finding("home", "fail", f"{home} can't be written", f"`chmod u+rwx {home}`")]
    mode = stat.S_IMODE(status.st_mode)
    if mode & 0o077:
        words = f"{home} can be read by others (mode {mode:o})"
        return [Finding("home", "fail", words, f"`chmod 700 {home}`")]
    return [Finding("home", "ok", f"{home} is yours alone")]


def secrets(patient: Patient) -> list[Finding]:
    found = []
    for name in PRIVATE:
        path = patient.settings.home / name
        try:
            mode = stat.S_IMODE(path.stat().st_mode)
        except OSError:
            continue
        if mode & 0o077:
            words = f"{path} can be read by others (mode {mode:o})"
            found.append(Finding(name, "fail", words, f"`chmod 600 {path}`"))
    return found


def file_system(patient: Patient) -> list[Finding]:
    kind = file_system_of(_standing(patient.settings.home))
    if kind in NETWORK_FILE_SYSTEMS:
        words = f"the home is on a network file system ({kind}), where a journal would be damaged"
        remedy = "give a home on a disk of this machine with --home"
        return [Finding("file system", "fail", words, remedy)]
    return [Finding("file system", "ok", f"the home is on {kind or 'an unknown file system'}")]


def space(patient: Patient) -> list[Finding]:
    wanted = patient.settings.free_bytes
    free = shutil.disk_usage(_standing(patient.settings.home)).free
    words = f"{size(free)} free at the home"
    if free < wanted:
        return [
            Finding(
                "disk",
                "fail",
                f"{words}: agents are paused below {size(wanted)}",
                "make room, or lower the setting free_bytes",
            )
        ]
    if free < wanted * 4:
        return [Finding("disk", "warn", f"{words}, which is little", "make some room")]
    return [Finding("disk", "ok", words)]


def server(patient: Patient) -> list[Finding]:
    settings = patient.settings
    path = socket_of(settings.home)
    if answers(path):
        return [Finding("server", "ok", f"one is up and answers at {path}")]
    return [_port(settings.host, settings.port)]


def _port(host: str, port: int) -> Finding:
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            words = f"another program listens on port {port} of {host}"
            return Finding("port", "fail", words, "use another one: `bridle up --port 0`")
        words = f"port {port} of {host} can't be had: {error.strerror or error}"
        return Finding("port", "fail", words, "set host and port: `bridle up --host … --port …`")
    return Finding("port", "ok", f"no server is up; port {port} of {host} is free")


def _standing(path: Path) -> Path:
    """The nearest folder that is there."""
    return next(folder for folder in (path, *path.parents) if folder.exists())
