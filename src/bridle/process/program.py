"""What one launch runs: which program, with which words and in which environment.

Owns the fitting of a launch to the version that was found; does not start anything, except to ask
a program for its version.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import msgspec

from ..protocol.capabilities import Capabilities
from .arguments import cli_arguments, cli_environment, with_hooks_on
from .find import FoundCli, check_age, find_cli
from .spec import LaunchSpec
from .version import remembered, with_version


class Program:
    """One launch, by its spec, and what `launch` marks. `inherited` is what it starts from.

    `is_gated`: hooks of ours must be called, whatever the settings say.
    """

    def __init__(
        self, spec: LaunchSpec, launch: str, inherited: Mapping[str, str] | None, *, is_gated: bool
    ) -> None:
        base = os.environ if inherited is None else inherited
        self._own_env = cli_environment(spec, base, launch)
        cli_arguments(spec)  # so that a mistake is told now
        self._spec = spec
        self._is_gated = is_gated
        self.cli: FoundCli | None = None
        self.argv: tuple[str, ...] = ()

    @property
    def version(self) -> str | None:
        return self.cli.version if self.cli else None

    @property
    def env(self) -> dict[str, str]:
        # npm would else write its news where the CLI's last words are looked for.
        is_npm = self.cli is not None and self.cli.source in ("npx", "router")
        return {**({"NPM_CONFIG_LOGLEVEL": "error"} if is_npm else {}), **self._own_env}

    def find(self) -> FoundCli:
        """Which program it will be, with its version where that is known without asking."""
        cli = self.cli = check_age(remembered(find_cli(self._spec, self._own_env)))
        self.argv = (*self._spec.containment, *cli.command, *cli_arguments(self._fitted(cli)))
        return cli

    async def identify(self) -> None:
        """Ask the program for its version, where nothing else has told it."""
        self.cli = check_age(await with_version(self.cli or self.find(), self._own_env))

    def _fitted(self, cli: FoundCli) -> LaunchSpec:
        """The launch as this version needs it."""
        spec, known = self._spec, Capabilities(cli.version)
        if known.does("queued prompts are merged") != "yes":
            # That alone tells which prompts a turn has taken up.
            spec = msgspec.structs.replace(spec, replay_user_messages=True)
        if self._is_gated and known.does("settings can't remove hooks") != "yes":
            spec = msgspec.structs.replace(spec, settings=with_hooks_on(spec.settings, spec.cwd))
        return spec
