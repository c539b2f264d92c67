"""The policy that is in force for one agent. It changes by what a person says, never by itself."""

from __future__ import annotations

from .policy import Policy
from .presets import PRESET_OF_MODE, Preset
from .rules import parse_rule
from .verdicts import Behavior, Call, Ground, Verdict

REMEMBERED = "remembered"


class InForce:
    """A policy on its ground, with what was remembered since, and the mode that was chosen."""

    def __init__(self, policy: Policy, ground: Ground) -> None:
        self._base = policy
        self._policy = policy
        self._ground = ground
        self._judge = policy.on(ground)

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
        return self._judge.explain(call)

    def remember(self, rule: str, behavior: Behavior = "allow") -> None:
        """Have this rule from now on; InvalidRule if it is none."""
        self._put(self._policy.with_rules(parse_rule(rule, behavior, REMEMBERED)))

    def forget(self, rule: str) -> None:
        """Take a remembered rule back."""
        self._put(self._policy.without(rule.strip(), REMEMBERED))

    def choose(self, mode: str) -> None:
        """Go on as a person has chosen when they approved a plan. `default` is to be asked, unless
        the policy is to read only."""
        own: Preset = "read-only" if self._base.preset == "read-only" else "ask"
        self._put(self._policy.with_preset(PRESET_OF_MODE.get(mode, own)))

    def apply(self, policy: Policy) -> None:
        """Another policy, from now on. What was remembered is kept."""
        remembered = [rule for rule in self._policy.rules if rule.source == REMEMBERED]
        self._base = policy
        self._put(policy.with_rules(*remembered))

    def _put(self, policy: Policy) -> None:
        self._judge = policy.on(self._ground)  # first: what fails changes nothing
        self._policy = policy
