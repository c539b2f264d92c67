"""The environment in which the kit runs a CLI: its own empty home, and nobody to talk to but us."""

from __future__ import annotations

import os
from pathlib import Path

from .node import find_node

#: Nothing but the scripted model may be called.
QUIET = {
    "DISABLE_TELEMETRY": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
}


def cli_environment(home: Path, *, base_url: str) -> dict[str, str]:
    """A whole environment, made of nothing that was inherited but PATH.

    The user's `~/.claude` is neither read nor written; the folders below `home` are made.
    """
    node = find_node()
    config, scratch = home / "claude", home / "tmp"
    for folder in (home, config, scratch):
        folder.mkdir(parents=True, exist_ok=True)
    return {
        **QUIET,
        "PATH": node.path if node else os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "SHELL": "/bin/bash",
        "HOME": str(home),
        "CLAUDE_CONFIG_DIR": str(config),
        "TMPDIR": str(scratch),
        "CLAUDE_CODE_TMPDIR": str(scratch),
        "ANTHROPIC_BASE_URL": base_url,
        "ANTHROPIC_API_KEY": "sk-ant-scripted",
    }
