"""`bridle policy list|add|remove|rules|forget`: policies under a name, and rules that people had
remembered.

They are kept in the home, and not in a file of a repository: there an agent could change them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..completion import session_names
from ..context import Context
from ..errors import Misused, NoHome, NotFound, Refused
from ..options import Json, Values
from ..tables import age, show_table
from ..tree import register

if TYPE_CHECKING:
    from ...approvals.remember import RememberedRule
    from ...policy import Delegable, Policy
    from ...server.shapes.policies import AnyPolicy, PolicyView

_BEHAVIORS = ("allow", "ask", "deny")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of a policy that is kept.")]
OfSession = Annotated[
    str | None,
    typer.Option("--session", "-s", help="Of this session.", autocompletion=session_names),
]


def add_to(policy: typer.Typer) -> None:
    register(policy, None, list_them, "bridle policy list", name="list")
    register(
        policy,
        None,
        add,
        "bridle policy add team policy.toml",
        "bridle policy add team --allow 'Bash(npm test:*)' --deny 'Read(./secrets/**)'",
        "bridle policy add careful --preset read-only",
    )
    register(policy, None, remove, "bridle policy remove team")
    register(policy, None, rules, "bridle policy rules", "bridle policy rules --session fixer")
    register(policy, None, forget, "bridle policy forget 3f2a")


def list_them(context: typer.Context, is_json: Json = False) -> None:
    """List the presets, and the policies that are kept under a name."""
    here = Context.of(context, is_json=is_json)

    async def work() -> list[AnyPolicy]:
        async with here.client(offline=True) as client:
            return await client.policies.list()

    try:
        found = here.run(work())
    except NoHome:  # where nothing is kept, there are the presets
        found = _presets()
    if is_json:
        here.give(found)
    else:
        show_table(here, ("name", "kind", "preset", "rules", "by"), [_row(one) for one in found])


def _presets() -> list[AnyPolicy]:
    from ...policy import PRESETS
    from ...policy.policy import Policy
    from ...server.shapes.policies import PresetView

    return [
        PresetView(
            name=name,
            digest=Policy(name).digest,
            table={str(kind): told for kind, told in table.items()},
        )
        for name, table in PRESETS.items()
    ]


def _row(policy: AnyPolicy) -> tuple[str, ...]:
    from ...server.shapes.policies import PresetView

    if isinstance(policy, PresetView):
        return policy.name, "preset", policy.name, "-", "-"
    return policy.name, "kept", policy.preset, str(len(policy.rules)), policy.by.name


def add(
    context: typer.Context,
    name: Name,
    file: Annotated[
        Path | None, typer.Argument(help="A file (TOML): its text is kept as it is.")
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="What happens to what no rule speaks of.")
    ] = None,
    allow: Annotated[Values, typer.Option(metavar="RULE", help="Add a rule that allows.")] = None,
    ask: Annotated[
        Values, typer.Option(metavar="RULE", help="Add a rule that wants it asked.")
    ] = None,
    deny: Annotated[Values, typer.Option(metavar="RULE", help="Add a rule that denies.")] = None,
    is_json: Json = False,
) -> None:
    """Keep a policy under a name: a file as it is, or rules that are added to the one that is kept.

    With a file, its text takes the place of what was there. Without one, rules are added to the
    policy of this name, which is made if there is none; it is then written anew, and comments in it
    are lost. Sessions that run stay under what they were given.
    """
    here = Context.of(context, is_json=is_json)
    rules = {"allow": allow or [], "ask": ask or [], "deny": deny or []}
    has_rules = any(rules.values()) or preset is not None
    if (file is not None) == has_rules:
        raise Misused("give a file, or what is to be added", "--preset, --allow, --ask or --deny")
    _check_name(name)
    kept = here.run(_put(here, name, _text_of(file) if file else None, preset, rules))
    if is_json:
        here.give(kept)
    else:
        here.say(f"kept {kept.name}: preset {kept.preset}, {len(kept.rules)} rules")


def _check_name(name: str) -> None:
    from ...server.policies import check_name
    from ...server.problems import Problem

    try:
        check_name(name)
    except Problem as problem:
        raise Misused(problem.detail, problem.remedy) from None


def _text_of(file: Path) -> str:
    try:
        return file.expanduser().read_text()
    except FileNotFoundError:
        raise NotFound(
            f"there is no file {file}", "give the path of a policy that is there"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise Misused(f"{file} can't be read: {error}", "give a text file (TOML)") from error


async def _put(
    here: Context, name: str, text: str | None, preset: str | None, rules: dict[str, list[str]]
) -> PolicyView:
    from ...policy.files import parse_policy
    from ...server.shapes.policies import PresetView

    async with here.client(offline=True, makes_home=True) as client:
        if text is not None:
            return await client.policies.put(name, text)
        try:
            found = await client.policies.get(name)
        except Refused as refused:
            if refused.code != "unknown_policy":
                raise
            return await client.policies.put(name, written(preset or "ask", True, rules), 0)
        if isinstance(found, PresetView):
            raise Misused(f"{name} is a preset", "give another name")
        parsed = parse_policy(found.text, name)
        for rule in parsed.texts:
            rules[rule.behavior].append(rule.text)
        text = written(preset or parsed.preset, parsed.has_guard, rules, parsed)
        return await client.policies.put(name, text, found.revision)


def written(
    preset: str, has_guard: bool, rules: dict[str, list[str]], before: Policy | None = None
) -> str:
    """A policy as TOML; what is for people alone, and what may be delegated, as it was `before`."""
    import msgspec

    lines = [f"preset = {_toml(preset)}"]
    if not has_guard:
        lines.append("guard = false")
    people = [rule.text for rule in before.human_only] if before else []
    for key, texts in (*((name, rules[name]) for name in _BEHAVIORS), ("human_only", people)):
        if found := list(dict.fromkeys(texts)):
            lines += [f"{key} = [", *(f"  {_toml(one)}," for one in found), "]"]
    if before and before.delegate is not None:
        lines += _delegated(before.delegate)
    assert msgspec.toml.decode("\n".join(lines))
    return "\n".join(lines) + "\n"


def _delegated(entries: Sequence[Delegable]) -> list[str]:
    """Behind all other keys: they would belong to the entry above them."""
    if not entries:
        return ["delegate = []"]
    lines: list[str] = []
    for entry in entries:
        said = entry.text
        lines += ["", "[[delegate]]", f"rules = [{', '.join(map(_toml, said.rules))}]"]
        lines += [f"count = {said.count}"] if said.count is not None else []
        lines += [f"seconds = {said.seconds!r}"] if said.seconds is not None else []
        lines += [f"paths = [{', '.join(map(_toml, said.paths))}]"] if said.paths else []
    return lines


def _toml(text: str) -> str:
    """A basic string of TOML is one of JSON, as far as we use it."""
    import json

    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def remove(context: typer.Context, name: Name, is_json: Json = False) -> None:
    """Keep a policy no longer. Sessions that are under what it said stay under that."""
    here = Context.of(context, is_json=is_json)

    async def work() -> None:
        async with here.client(offline=True) as client:
            await client.policies.delete(name)

    here.run(work())
    if is_json:
        here.give({"name": name})
    else:
        here.say(f"removed {name}")


# --- what people had remembered


def rules(context: typer.Context, session: OfSession = None, is_json: Json = False) -> None:
    """List the rules that `--always` has added, or those of a session."""
    here = Context.of(context, is_json=is_json)

    async def work() -> list[RememberedRule]:
        async with here.client(offline=True) as client:
            found = (await client.sessions.get(session)).id if session else ""
            return await client.policies.rules(found)

    found = here.run(work())
    if is_json:
        here.give(found)
        return
    now = time.time()
    rows = [(one.id[:8], one.behavior, one.rule, _where(one), age(now - one.at)) for one in found]
    show_table(here, ("id", "verdict", "rule", "where", "age"), rows)


def _where(rule: RememberedRule) -> str:
    return "this session" if rule.session else rule.folder or "everywhere"


def forget(
    context: typer.Context,
    rule: Annotated[str, typer.Argument(metavar="RULE", help="A rule's id, or its beginning.")],
    session: OfSession = None,
    is_json: Json = False,
) -> None:
    """Have a remembered rule no longer: from now on it is asked again."""
    here = Context.of(context, is_json=is_json)

    async def work() -> RememberedRule:
        async with here.client(offline=True) as client:
            owner = (await client.sessions.get(session)).id if session else ""
            found = [one for one in await client.policies.rules(owner) if one.id.startswith(rule)]
            if len(found) != 1:
                words = f"{len(found) or 'no'} rules have an id that begins with {rule}"
                raise NotFound(words, "see `bridle policy rules`")
            await client.policies.forget(found[0].id, owner)
            return found[0]

    gone = here.run(work())
    if is_json:
        here.give(gone)
    else:
        here.say(f"forgot {gone.rule}")
