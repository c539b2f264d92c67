"""What a user gives as a policy, made ready: a preset's name, a file or a `Policy`; or no gate."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias, TypedDict

from ..errors import BridleError, InvalidPolicy
from ..home.address import addresses_in
from ..policy.files import parse_policy, parse_settings
from ..policy.force import InForce
from ..policy.policy import Policy
from ..policy.presets import NAMES
from ..policy.rules import Rule, parse_rule
from ..process.find import VARIABLE, find_cli, which
from ..process.spec import LaunchSpec
from .folder import bytes_of
from .ground import ground_of, with_repositories


class Ungated:
    """No policy and no hook of ours: only what the CLI itself asks about is seen."""


PolicyLike: TypeAlias = str | os.PathLike[str] | Policy | InForce | Ungated


def load_policy(path: str | os.PathLike[str]) -> Policy:
    """A policy from a TOML file and those that it includes, or from the rules of one of Claude's
    settings files (JSON). It is read now, and not again."""
    file = Path(path).absolute()
    try:
        text = _text(str(file))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidPolicy(str(path), None, f"it can't be read: {error}") from error
    if file.suffix == ".json":
        return Policy(rules=parse_settings(text, str(file)), files=[str(file)])
    return parse_policy(text, str(file), _text)


def _text(file: str) -> str:
    return bytes_of(Path(file)).decode("utf-8-sig")


def in_force(
    given: str | os.PathLike[str] | Policy, spec: LaunchSpec, home: Path | None = None
) -> InForce:
    """The policy for a launch, with the rules that the launch's own options mean. `home` is
    Bridle's, if it is not the one that the agent's environment names."""
    policy = given if isinstance(given, Policy) else _named(given)
    policy = policy.with_rules(*_options(spec))
    homes = homes_of(spec)
    usual = Path(homes["bridle_home"])
    if home:
        homes["bridle_home"] = str(home.absolute())
    ground = ground_of(
        spec.cwd or Path.cwd(),
        also=tuple(str(folder) for folder in spec.add_dirs),
        guarded=policy.files,
        programs=programs_of(spec, os.environ if spec.inherit_env else {}),
        plugins=tuple(map(str, spec.plugin_dirs)),
        addresses=(*addresses_in(Path(homes["bridle_home"])), *addresses_in(usual)),
        **homes,
    )
    return InForce(policy, with_repositories(ground))


class Homes(TypedDict):
    """Folders that an agent's environment names, and that a policy guards."""

    home: str
    claude_home: str
    bridle_home: str


def homes_of(spec: LaunchSpec) -> Homes:
    env = {**(os.environ if spec.inherit_env else {}), **spec.env}
    default = Path(env.get("HOME", "~")).expanduser() / ".bridle"
    return Homes(
        home=env.get("HOME", ""),
        claude_home=env.get("CLAUDE_CONFIG_DIR", ""),
        bridle_home=env.get("BRIDLE_HOME") or str(default),
    )


def programs_of(spec: LaunchSpec, inherited: Mapping[str, str]) -> tuple[str, ...]:
    """The files of the CLI that would be launched, as far as it is found."""
    env = {**inherited, **spec.env}
    if spec.command is None and not env.get(VARIABLE):
        found = which("claude", env)
        return (found,) if found else ()  # else it is fetched when it is launched
    try:
        words = find_cli(spec, env).command
    except BridleError:
        return ()  # the launch will say so
    return tuple(word for word in words if "/" in word and os.path.isfile(word))  # noqa: PTH113


def fit(policy: InForce, spec: LaunchSpec) -> None:
    """Hold a policy that is in force already to the options of a launch."""
    if spec.cwd is not None and str(Path(spec.cwd).absolute()) != policy.ground.folder:
        raise TypeError(f"the policy is for {policy.ground.folder}, the session for {spec.cwd}")
    known = {(rule.behavior, rule.text) for rule in policy.policy.rules}
    options = _options(spec)
    policy.add_rules(rule for rule in options if (rule.behavior, rule.text) not in known)


def _named(given: str | os.PathLike[str]) -> Policy:
    if isinstance(given, str):
        for name in NAMES:
            if given == name:
                return Policy(name)
        if not given.endswith((".toml", ".json")):
            presets = ", ".join(NAMES)
            raise InvalidPolicy(
                given, None, f"no such preset ({presets}), and no .toml or .json file"
            )
    return load_policy(given)


def _options(spec: LaunchSpec) -> list[Rule]:
    """`allowed_tools` and `disallowed_tools` are rules too, in the same words."""
    return [
        *(parse_rule(text, "allow", "allowed_tools") for text in spec.allowed_tools),
        *(parse_rule(text, "deny", "disallowed_tools") for text in spec.disallowed_tools),
    ]
