"""Python, SQLite, git, and what the system lets one user have."""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
import sqlite3
import subprocess
import sys

from .examination import Finding, Patient

#: Partial indexes, WAL and upserts are older; this one is what the tests run with at the least.
LEAST_SQLITE = (3, 35, 0)
LEAST_DESCRIPTORS = 1024
LEAST_WATCHES = 8192


def python(_: Patient) -> list[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    return [Finding("python", "ok", f"Python {version} at {sys.executable}")]


def sqlite(_: Patient) -> list[Finding]:
    words = f"SQLite {sqlite3.sqlite_version}"
    if sqlite3.sqlite_version_info < LEAST_SQLITE:
        least = ".".join(map(str, LEAST_SQLITE))
        remedy = f"use a Python that is built with SQLite {least} or newer"
        return [Finding("sqlite", "fail", words, remedy)]
    return [Finding("sqlite", "ok", words)]


def git(patient: Patient) -> list[Finding]:
    program = shutil.which("git", path=patient.environ.get("PATH"))
    if program is None:
        words = "git is not there: agents can't commit, and changes can't be compared"
        return [Finding("git", "warn", words, "install git")]
    said = subprocess.run(
        [program, "--version"], capture_output=True, text=True, timeout=10, check=False
    )
    return [Finding("git", "ok", f"{said.stdout.strip() or 'git'} at {program}")]


def descriptors(_: Patient) -> list[Finding]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    words = f"a process may have {soft} files open"
    if soft != resource.RLIM_INFINITY and soft < LEAST_DESCRIPTORS:
        top = "unlimited" if hard == resource.RLIM_INFINITY else hard
        remedy = f"raise it with `ulimit -n {LEAST_DESCRIPTORS}` (up to {top} is allowed)"
        return [Finding("open files", "warn", words, remedy)]
    return [Finding("open files", "ok", words)]


def inotify(patient: Patient) -> list[Finding]:
    """Without it agents are looked at again and again, which is slower."""
    if sys.platform != "linux":
        return []
    instances = patient.read("/proc/sys/fs/inotify/max_user_instances").strip()
    watches = patient.read("/proc/sys/fs/inotify/max_user_watches").strip()
    if not _has_inotify():
        words = f"all {instances or 'of your'} inotify instances are in use: agents are polled"
        remedy = "end programs that watch files, or `sudo sysctl fs.inotify.max_user_instances=512`"
        return [Finding("inotify", "warn", words, remedy)]
    words = f"{instances or '?'} instances and {watches or '?'} watches for a user"
    if watches.isdigit() and int(watches) < LEAST_WATCHES:
        remedy = "raise them with `sudo sysctl fs.inotify.max_user_watches=65536`"
        return [Finding("inotify", "warn", words, remedy)]
    return [Finding("inotify", "ok", words)]


def _has_inotify() -> bool:
    descriptor = ctypes.CDLL(None, use_errno=True).inotify_init1(os.O_CLOEXEC)
    if descriptor < 0:
        return False
    os.close(descriptor)
    return True
