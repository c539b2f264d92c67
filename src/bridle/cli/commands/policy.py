"""`bridle policy`: read, checked, explained, tried and kept.

A policy is named by a preset, by a file (.toml, .json) or by the name under which one was kept.
Presets and files need no server; kept ones are asked of it, or of the home where none is up.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..completion import policy_names
from ..context import Context
from ..errors import Misused, NoHome, NotFound
from ..options import Json
from ..tree import QuickGroup, register
from ..trust import trusted_survey

if TYPE_CHECKING:
    from ...policy import Call, Delegable, InForce, Policy
    from ...server.shapes.policies import AnyPolicy

PANEL = "What agents may do"

policy = typer.Typer(
    cls=QuickGroup, no_args_is_help=True, help="What agents may do: look at it, try it, keep it."
)

PolicyName = Annotated[
    str,
    typer.Argument(
        metavar="POLICY",
        help="A preset, a .toml or .json file, or the name of a policy that is kept.",
        autocompletion=policy_names,
        show_default=False,
    ),
]


def add_to(app: typer.Typer) -> None:
    from . import keeping, trying

    register(policy, None, check, "bridle policy check policy.toml", "bridle policy check edits")
    register(policy, None, show, "bridle policy show read-only", "bridle policy show team --json")
    register(
        policy,
        None,
        explain,
        "bridle policy explain 'npm test && rm -rf build'",
        "bridle policy explain 'git push' --policy policy.toml --cwd ~/app",
        """bridle policy explain --tool Edit --input '{"file_path": "src/a.py"}' --policy edits""",
    )
    trying.add_to(policy)
    keeping.add_to(policy)
    app.add_typer(policy, name="policy", rich_help_panel=PANEL)


def check(context: typer.Context, name: PolicyName, is_json: Json = False) -> None:
    """Read a policy and say whether it can be used; a mistake is told with its file and line."""
    here = Context.of(context, is_json=is_json)
    found = named(here, name)
    if is_json:
        here.give(_told(found))
        return
    here.say(f"{name} can be used: {_summary(found)}")


def show(context: typer.Context, name: PolicyName, is_json: Json = False) -> None:
    """Show what a policy says: its rules, and what its preset does with everything else."""
    from ...policy import PRESETS
    from ..tables import show_table

    here = Context.of(context, is_json=is_json)
    found = named(here, name)
    if is_json:
        here.give(_told(found))
        return
    here.say(_summary(found))
    people = [("human only", rule.text, rule.source) for rule in found.human_only]
    rules = people + [(rule.behavior, rule.text, rule.source) for rule in found.texts]
    if rules:
        show_table(here, ("rule", "what", "where"), rules)
    here.say(f"\nwithout a rule ({found.preset}):")
    rows = [(kind, behavior) for kind, behavior in PRESETS[found.preset].items()]
    show_table(here, ("call", "verdict"), rows)
    if found.delegate is not None:
        here.say("\nwhat its agent may let those below it do:")
        entries = [(", ".join(one.text.rules), _bounds(one)) for one in found.delegate]
        show_table(here, ("rules", "how far"), entries or [("nothing", "")])


def explain(
    context: typer.Context,
    command: Annotated[
        str | None, typer.Argument(help="A shell command that an agent might run.")
    ] = None,
    given: Annotated[
        str | None,
        typer.Option("--policy", "-p", help="The policy; else the one that is set."),
    ] = None,
    tool: Annotated[str, typer.Option(help="Another tool than the shell.")] = "Bash",
    fields: Annotated[
        str | None, typer.Option("--input", help="The input of the tool, as JSON.")
    ] = None,
    cwd: Annotated[Path, typer.Option(help="The folder of the agent.")] = Path(),
    mode: Annotated[str | None, typer.Option(help="The CLI's permission mode.")] = None,
    is_json: Json = False,
) -> None:
    """Say what a policy would answer to a call, by which rule, and which rules would allow it.

    Nothing is run.
    """
    from ...policy import Asked, suggest

    here = Context.of(context, is_json=is_json, policy=given)
    call = _call(command, tool, fields, mode)
    force = here.run(on(here, named(here, here.settings.policy), cwd))
    verdict = force.judge(call)
    suggested = (
        suggest(call, force.ground, policy=force.policy) if isinstance(verdict, Asked) else []
    )
    if is_json:
        here.give({"verdict": verdict, "text": force.explain(call), "suggestions": suggested})
        return
    here.say(force.explain(call))
    for rule in suggested:
        here.say(f"  would be allowed by: {rule}")


def _call(command: str | None, tool: str, fields: str | None, mode: str | None) -> Call:
    import msgspec

    from ...policy import Call

    if (command is None) == (fields is None):
        raise Misused("give a shell command, or a --tool with its --input")
    if fields is None:
        return Call(tool, {"command": command}, mode)
    try:
        return Call(tool, msgspec.json.decode(fields, type=dict[str, Any]), mode)
    except msgspec.MsgspecError as error:
        raise Misused(f"--input is no JSON object: {error}") from error


async def on(here: Context, found: Policy, folder: Path) -> InForce:
    """The policy for an agent in this folder."""
    from ...process.spec import LaunchSpec
    from ...session.policies import in_force

    path = os.path.abspath(folder)  # noqa: ASYNC240, PTH100 - looked at once
    if not os.path.isdir(path):  # noqa: ASYNC240, PTH112
        raise Misused(f"there is no folder {folder}", "give one with --cwd")
    force = in_force(found, LaunchSpec(cwd=path))
    if trust := await trusted_survey(here, path):
        force.trust(map(str, trust.git))
    return force


def named(here: Context, name: str) -> Policy:
    """The policy of this name: a preset, a file, or one that is kept."""
    from ...policy.files import parse_policy
    from ...policy.policy import Policy
    from ...policy.presets import NAMES
    from ...session.policies import load_policy

    for preset in NAMES:
        if name == preset:
            return Policy(preset)
    if name.endswith((".toml", ".json")):
        if not (file := Path(name).expanduser()).is_file():
            raise NotFound(f"there is no file {name}", "give the path of a policy that is there")
        return load_policy(file)

    async def kept() -> AnyPolicy:
        async with here.client(offline=True) as client:
            return await client.policies.get(name)

    try:
        found = here.run(kept())
    except NoHome:  # where nothing is kept
        raise NotFound(f"there is no policy {name!r}", "see `bridle policy list`") from None
    # A preset has no text; of those that we know, it is none.
    return parse_policy(getattr(found, "text", ""), name)


def _summary(found: Policy) -> str:
    count = len(found.rules)
    rules = "1 rule" if count == 1 else f"{count or 'no'} rules"
    guard = "" if found.has_guard else ", without the guard"
    return f"preset {found.preset}, {rules}{guard} ({found.digest[:12]})"


def _told(found: Policy) -> dict[str, object]:
    return {
        "preset": found.preset,
        "guard": found.has_guard,
        "digest": found.digest,
        "files": found.files,
        "rules": found.texts,
        "human_only": [rule.text for rule in found.human_only],
        "delegate": found.delegate and [one.text for one in found.delegate],
    }


def _bounds(entry: Delegable) -> str:
    told = [
        f"{entry.count} times" if entry.count is not None else "",
        f"for {entry.seconds:g} seconds" if entry.seconds is not None else "",
        f"in {', '.join(entry.paths)}" if entry.paths else "",
    ]
    return ", ".join(filter(None, told)) or "always"
