"""What would end agents against your will: a logout, the restart of a unit, a container's end."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

from ..people import person_here
from .examination import Finding, Patient

LOGIND = ("/etc/systemd/logind.conf", "/usr/lib/systemd/logind.conf")


def logout(patient: Patient) -> list[Finding]:
    """systemd may end all of a user's processes when the last terminal is closed."""
    if sys.platform != "linux" or not patient.file("/run/systemd/system").exists():
        return [Finding("logout", "ok", "nothing here ends agents when you log out")]
    if not _kills_at_logout(patient):
        return [Finding("logout", "ok", "agents stay when you log out (KillUserProcesses=no)")]
    if patient.file(f"/var/lib/systemd/linger/{person_here()}").exists():
        return [Finding("logout", "ok", "agents stay when you log out: lingering is on")]
    where = [name for name, variable in _SEATS if patient.environ.get(variable)]
    seat = f" (you are in {' and '.join(where)}, which does not help)" if where else ""
    words = f"a logout ends all agents{seat}: KillUserProcesses=yes"
    return [Finding("logout", "warn", words, "`loginctl enable-linger`")]


_SEATS = (("ssh", "SSH_CONNECTION"), ("tmux", "TMUX"), ("screen", "STY"))


def _kills_at_logout(patient: Patient) -> bool:
    kills = False
    for name in reversed(LOGIND):
        parts = patient.file(f"{name}.d")
        for file in [patient.file(name), *sorted(parts.glob("*.conf"))]:
            text = patient.read(str(file.relative_to(patient.root)))
            for value in re.findall(r"(?m)^\s*KillUserProcesses\s*=\s*(\w+)", text):
                kills = value.lower() in ("yes", "true", "on", "1")
    return kills


def unit(patient: Patient) -> list[Finding]:
    """A service that is restarted takes all with it, unless it is told not to."""
    group = patient.read("/proc/self/cgroup").strip().rpartition(":")[2]
    name = group.rstrip("/").rpartition("/")[2]
    if not name.endswith(".service") or re.fullmatch(r"user@\d+\.service", name):
        return [Finding("restart", "ok", "this is no service: a restart of one ends no agent")]
    how = _kill_mode(name, is_user="/user@" in group)
    if how in ("process", "none"):
        return [Finding("restart", "ok", f"{name} leaves agents alone (KillMode={how})")]
    words = f"what runs in {name} ends with it (KillMode={how or 'unknown'}), agents too"
    remedy = "set KillMode=process and OOMPolicy=continue in the unit: docs/supervisor.md"
    return [Finding("restart", "warn", words, remedy)]


def _kill_mode(name: str, *, is_user: bool) -> str:
    program = shutil.which("systemctl")
    if program is None:
        return ""
    words = [program, *(["--user"] if is_user else []), "show", "-p", "KillMode", "--value", name]
    said = subprocess.run(words, capture_output=True, text=True, timeout=10, check=False)
    return said.stdout.strip()


def container(patient: Patient) -> list[Finding]:
    signs = ("/.dockerenv", "/run/.containerenv")
    if not any(patient.file(sign).exists() for sign in signs):
        return []
    words = "this is a container: when it is stopped, all agents end with it"
    return [Finding("container", "warn", words, "keep the home on a volume, and `bridle resume`")]
