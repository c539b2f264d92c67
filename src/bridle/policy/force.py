"""The policy that is in force for one agent. It changes by what a person says, never by itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from .ceilings import REMEMBERED, Above, BelowOthers
from .judge import Judge
from .policy import Policy
from .presets import PRESET_OF_MODE, Preset, is_wider
from .rules import Rule, parse_rule
from .verdicts import Behavior, Call, Ground, Verdict
from .wording import explained


class InForce:
    """A policy on its ground, with what was remembered since, and the mode that was chosen. Those
    who are `above` the agent set it bounds, whatever becomes of the policy."""

    def __init__(self, policy: Policy, ground: Ground, above: Sequence[Above] = ()) -> None:
        self._base = policy
        self._policy = policy
        self._ground = ground
        self._above = tuple(above)
        self._judge = self._made(policy, ground)
        #: What was added since that takes rights away.
        self._added: tuple[Rule, ...] = ()

    @property
    def base(self) -> Policy:
        """The one that was applied, without what came to it since."""
        return self._base

    @property
    def policy(self) -> Policy:
        """All that holds now."""
        return self._policy

    @property
    def ground(self) -> Ground:
        return self._ground

    def judge(self, call: Call) -> Verdict:
        return self._judge.judge(call)

    def explain(self, call: Call) -> str:
        return explained(self._judge.judge(call))

    def remember(self, rule: str, behavior: Behavior = "allow", source: str = REMEMBERED) -> None:
        """Have this rule from now on; InvalidRule if it is none. From one source it is had once."""
        made = parse_rule(rule, behavior, source)
        self._put(self._policy.without(made).with_rules(made))

    def forget(self, rule: str, behavior: Behavior = "allow", source: str = REMEMBERED) -> None:
        """Take a remembered rule back; one of the same words from another source stays."""
        self._put(self._policy.without(parse_rule(rule, behavior, source)))

    def choose(self, mode: str) -> None:
        """Go on as a person has chosen when they approved a plan. `default` is to be asked, unless
        the policy is to read only."""
        own: Preset = "read-only" if self._base.preset == "read-only" else "ask"
        self._put(self._policy.with_preset(PRESET_OF_MODE.get(mode, own)))

    def tighten(self, mode: str) -> None:
        """Go back to a stricter preset, if this mode is one; it never loosens."""
        wanted = PRESET_OF_MODE.get(mode, "ask")
        if mode != "plan" and is_wider(self._policy.preset, wanted):
            self._put(self._policy.with_preset(wanted))

    def add_rules(self, rules: Iterable[Rule]) -> None:
        """Have these, too. Those that take rights away stay under another policy."""
        rules = tuple(rules)
        self._put(self._policy.with_rules(*rules))
        self._added += tuple(rule for rule in rules if rule.behavior != "allow")

    def trust(self, found: Iterable[str]) -> None:
        """Of what repositories would have git run, this is trusted and nothing else."""
        self._put(self._policy, msgspec.structs.replace(self._ground, trusted=frozenset(found)))

    def add_folders(self, folders: Iterable[str]) -> None:
        """The agent may work in these, too."""
        also = (*self._ground.also, *folders)
        self._put(self._policy, msgspec.structs.replace(self._ground, also=also))

    def go_on(self, preset: Preset, folders: Iterable[str], under: str) -> None:
        """As it was before a restart: what people have chosen since its start still holds, if that
        was `under` the policy with this digest. (Who does not know says ""; so it was once.)"""
        ground = msgspec.structs.replace(self._ground, also=tuple(folders))
        is_same = under in ("", self._base.digest)
        self._put(self._policy.with_preset(preset) if is_same else self._policy, ground)

    def apply(self, policy: Policy) -> None:
        """Another policy, from now on; its files are guarded. What was remembered is kept, and what
        was added to take rights away; the mode that was chosen is not."""
        rules = self._policy.rules
        remembered = [rule for rule in rules if rule.source.startswith(REMEMBERED)]
        ground = msgspec.structs.replace(self._ground, guarded=policy.files)
        self._put(policy.with_rules(*self._added, *remembered), ground)
        self._base = policy

    def _put(self, policy: Policy, ground: Ground | None = None) -> None:
        ground = ground or self._ground
        self._judge = self._made(policy, ground)  # first: what fails changes nothing
        self._policy, self._ground = policy, ground

    def _made(self, policy: Policy, ground: Ground) -> Judge | BelowOthers:
        return BelowOthers(policy, ground, self._above) if self._above else policy.on(ground)
