"""How an MCP client is told of us: the entry of its file of servers, or the line that adds it.

Owns the form of both. What goes over HTTP has the token in it; what goes by `bridle mcp stdio` has
not, and finds the server wherever it is.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ...process.interpreter import own_program

AGENTS, PERMIT = "bridle-agents", "bridle-permit"
#: A question may wait for a person until the next day; a client would give up after some minutes.
PERMIT_TIMEOUT_MS = 24 * 60 * 60 * 1000
PERMIT_FLAG = f"--permission-prompt-tool mcp__{PERMIT}__loopback_permit"


class OverHttp(Struct, frozen=True):
    url: str
    token: str


class OverStdio(Struct, frozen=True):
    """`ahead` are the options ahead of the command, `behind` those of the proxy."""

    ahead: tuple[str, ...]
    behind: tuple[str, ...]


def server_name(*, is_permit: bool) -> str:
    return PERMIT if is_permit else AGENTS


def path_of(*, is_permit: bool) -> str:
    return "/mcp/permit" if is_permit else "/mcp"


def entry_of(way: OverHttp | OverStdio, *, is_permit: bool) -> dict[str, Any]:
    """One server, as `.mcp.json` has it. Its tools are to be there from the start."""
    # Clients put off tools that they were not told to load.
    common: dict[str, Any] = {"alwaysLoad": True}
    if is_permit:
        common["timeout"] = PERMIT_TIMEOUT_MS
    match way:
        case OverHttp(url, token):
            address = url.rstrip("/") + path_of(is_permit=is_permit)
            headers = {"Authorization": f"Bearer {token}"}
            return {"type": "http", "url": address, "headers": headers, **common}
        case OverStdio(ahead, behind):
            permit = ("--permit",) if is_permit else ()
            program, *args = own_program("bridle.cli", *ahead, "mcp", "stdio", *permit, *behind)
            return {"type": "stdio", "command": program, "args": args, **common}


def file_with(entry: dict[str, Any], *, is_permit: bool) -> dict[str, Any]:
    """The whole of a `.mcp.json`, or of what `--mcp-config` takes."""
    return {"mcpServers": {server_name(is_permit=is_permit): entry}}


def line_with(entry: dict[str, Any], *, is_permit: bool) -> str:
    """The command that adds it. (`claude mcp add` itself has no way to say all of the entry.)"""
    text = msgspec.json.encode(entry).decode()
    words = ["claude", "mcp", "add-json", server_name(is_permit=is_permit), text]
    return shlex.join(words)


def ahead_of(home: Path, url: str | None) -> tuple[str, ...]:
    """By which the proxy finds the same server as this command."""
    return ("--home", str(home), *(("--url", url) if url else ()))
