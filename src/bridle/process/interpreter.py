"""How Bridle starts its own programs.

Owns the words of that command. `-P` keeps the current folder off Python's path: often an agent
writes to it, and a file `typer.py` there would run with our rights.
"""

from __future__ import annotations

import sys


def own_program(module: str, *words: str) -> tuple[str, ...]:
    """The command that runs a module of ours as a program."""
    return (sys.executable, "-P", "-m", module, *words)
