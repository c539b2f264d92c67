"""Options of `run`, `attach` and `logs` that no other command has."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from ..completion import policy_names
from ..options import Values

PolicyHere: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--policy", "-p", help="What it may do: a preset, or a file.", autocompletion=policy_names
    ),
]
YesTo: TypeAlias = Annotated[
    Values, typer.Option(metavar="RULE", help="Allow what this rule matches, in this run.")
]
Resume: TypeAlias = Annotated[
    str | None, typer.Option(metavar="ID", help="Go on with this conversation of the CLI's.")
]
Continue: TypeAlias = Annotated[
    bool, typer.Option("--continue", "-c", help="Go on with the folder's last conversation.")
]
Requests: TypeAlias = Annotated[
    int | None, typer.Option(min=1, help="So many requests to the model at most.")
]
Dollars: TypeAlias = Annotated[float | None, typer.Option(min=0, help="Dollars, about.")]
Interactive: TypeAlias = Annotated[
    bool, typer.Option("--interactive", "-i", help="Type further prompts; Ctrl-D leaves.")
]
Detach: TypeAlias = Annotated[
    bool, typer.Option("--detach", "-d", help="Hand it to the server that is up, and leave.")
]
Verbose: TypeAlias = Annotated[
    bool, typer.Option("--verbose", "-v", help="All that it thinks, its stderr, each change.")
]
Claude: TypeAlias = Annotated[
    str | None, typer.Option(help="The command that starts Claude Code (BRIDLE_CLAUDE).")
]

# --- attach and logs

LastEntries: TypeAlias = Annotated[
    int, typer.Option("--tail", "-t", min=0, max=1000, help="Show the last so many entries.")
]
ReadOnly: TypeAlias = Annotated[
    bool, typer.Option("--read-only", "-r", help="Only look on: no keys, no prompts.")
]
StopOnExit: TypeAlias = Annotated[
    bool, typer.Option("--stop-on-exit", help="Stop the agent when you leave.")
]
Follow: TypeAlias = Annotated[
    bool, typer.Option("--follow", "-f", help="Go on with what comes, until Ctrl-C.")
]
Tail: TypeAlias = Annotated[
    int | None, typer.Option("--tail", "-t", min=0, help="Only the last so many.")
]
Since: TypeAlias = Annotated[
    str | None, typer.Option(metavar="TIME", help="Only since then: 30s, 10m, 2h, 1d ago.")
]
Events: TypeAlias = Annotated[
    bool, typer.Option("--events", help="The events as they were written down, one a line.")
]
