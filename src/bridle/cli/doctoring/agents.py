"""Claude Code: which one would be run, how well it is known, and whether somebody is logged in."""

from __future__ import annotations

import sys
from pathlib import Path

from ...errors import BridleError
from ...process.find import INSTALL, check_age, find_cli
from ...process.spec import LaunchSpec
from ...process.version import with_version
from ...protocol.capabilities import TESTED_VERSIONS, parse_version
from .examination import Finding, Patient

#: Each by itself is enough for the CLI; which value it has is nobody's business.
VARIABLES = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CODE_USE_FOUNDRY",
)


async def claude(patient: Patient) -> list[Finding]:
    env = dict(patient.environ)
    if patient.settings.claude:
        env["BRIDLE_CLAUDE"] = patient.settings.claude
    try:
        found = check_age(await with_version(find_cli(LaunchSpec(), env), env))
    except BridleError as error:
        words, _, remedy = str(error).partition(". ")
        return [Finding("claude", "fail", words, remedy or INSTALL)]
    program = " ".join(found.command)
    if found.source == "npx":
        words = f"there is no `claude`: npx would fetch {found.version} at the first start"
        return [Finding("claude", "warn", words, INSTALL)]
    if found.version is None:
        words = f"{program} does not tell its version; {', '.join(TESTED_VERSIONS)} are tested"
        return [Finding("claude", "warn", words, "see what `bridle record` makes of it")]
    return [_judged(f"Claude Code {found.version} at {program}", found.version)]


def _judged(words: str, version: str) -> Finding:
    newest = TESTED_VERSIONS[-1]
    if version in TESTED_VERSIONS:
        return Finding("claude", "ok", f"{words} (a tested version)")
    if (parse_version(version) or ()) > (parse_version(newest) or ()):
        words = f"{words} is newer than what was tested ({newest})"
        remedy = (
            f"if it misbehaves, use {newest}: npm install -g @anthropic-ai/claude-code@{newest}"
        )
        return Finding("claude", "warn", words, remedy)
    return Finding("claude", "ok", f"{words} (between tested versions)")


def login(patient: Patient) -> list[Finding]:
    given = [name for name in VARIABLES if patient.environ.get(name)]
    if given:
        return [Finding("login", "ok", f"{given[0]} is set")]
    home = patient.environ.get("HOME") or str(Path.home())
    folder = Path(patient.environ.get("CLAUDE_CONFIG_DIR") or Path(home) / ".claude")
    if (folder / ".credentials.json").is_file():
        return [Finding("login", "ok", f"a login is kept in {folder}")]
    if sys.platform == "darwin":
        words = "no key is set; a login would be in the keychain, which is not looked into"
        return [Finding("login", "warn", words, "run `claude` once and see that it answers")]
    words = f"nobody is logged in: no login in {folder}, and no key in the environment"
    remedy = "run `claude` and use /login, or set ANTHROPIC_API_KEY where the server is started"
    return [Finding("login", "warn", words, remedy)]
