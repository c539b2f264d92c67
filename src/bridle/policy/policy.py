"""A policy: rules over a preset. It can be hashed and written down; `on` puts it to work."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

import msgspec
from msgspec import Struct

from ..errors import InvalidPolicy
from .presets import NAMES, Preset
from .rules import Rule, parse_rule
from .verdicts import Behavior, Ground

if TYPE_CHECKING:
    from .judge import Judge


class RuleText(Struct, frozen=True):
    """A rule as it is written, and where."""

    behavior: Behavior
    text: str
    source: str = ""


class Policy:
    """What an agent may do. Deny beats ask beats allow; of what no rule speaks the preset says.

    `has_guard` False switches the laundering guard off: then a rule may allow what it would see.
    """

    def __init__(
        self,
        preset: Preset = "ask",
        *,
        allow: Iterable[str] = (),
        ask: Iterable[str] = (),
        deny: Iterable[str] = (),
        has_guard: bool = True,
        rules: Iterable[Rule] = (),
        files: Iterable[str] = (),
    ) -> None:
        if preset not in NAMES:
            raise InvalidPolicy("policy", None, f"no preset {preset!r}: use {', '.join(NAMES)}")
        rules = tuple(rules)
        if not all(isinstance(rule, Rule) for rule in rules):
            raise InvalidPolicy(
                "policy", None, "rules are made by parse_rule; texts go to allow=[…]"
            )
        self.preset: Preset = preset
        self.has_guard = has_guard
        #: The files that it was read from.
        self.files = tuple(files)
        self.rules: tuple[Rule, ...] = (
            *rules,
            *_parsed("deny", deny),
            *_parsed("ask", ask),
            *_parsed("allow", allow),
        )

    def __repr__(self) -> str:
        return f"<Policy {self.preset}, {len(self.rules)} rules, {self.digest[:12]}>"

    def with_rules(self, *rules: Rule) -> Policy:
        """The same with more rules."""
        return self._with(self.preset, (*self.rules, *rules))

    def without(self, gone: Rule) -> Policy:
        """The same without rules that say the same and are from the same source."""
        facts = (gone.behavior, gone.text, gone.source)
        kept = [rule for rule in self.rules if (rule.behavior, rule.text, rule.source) != facts]
        return self._with(self.preset, kept)

    def with_preset(self, preset: Preset) -> Policy:
        return self._with(preset, self.rules)

    def _with(self, preset: Preset, rules: Iterable[Rule]) -> Policy:
        return Policy(preset, has_guard=self.has_guard, rules=rules, files=self.files)

    @property
    def texts(self) -> tuple[RuleText, ...]:
        """Its rules as they are written."""
        return tuple(RuleText(rule.behavior, rule.text, rule.source) for rule in self.rules)

    @property
    def text(self) -> str:
        """What it says, written in one way only, wherever its rules come from."""
        said = sorted({(rule.behavior, rule.text) for rule in self.rules})
        return msgspec.json.encode([self.preset, self.has_guard, said]).decode()

    @classmethod
    def read(cls, text: str, files: Iterable[str] = ()) -> Policy:
        """The policy that says this, as `text` writes it; InvalidPolicy for what it does not."""
        try:
            preset, has_guard, said = msgspec.json.decode(text, type=_Said)
        except msgspec.DecodeError as error:
            raise InvalidPolicy("policy", None, f"not the text of a policy: {error}") from error
        rules = [parse_rule(rule, behavior, "policy") for behavior, rule in said]
        return cls(preset, has_guard=has_guard, rules=rules, files=files)

    @property
    def digest(self) -> str:
        """The hash of what it says."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def on(self, ground: Ground) -> Judge:
        """The policy for one agent."""
        from .judge import Judge  # the judge needs the policy's type

        return Judge(self, ground)


_Said: TypeAlias = tuple[Preset, bool, list[tuple[Behavior, str]]]


def _parsed(behavior: Behavior, texts: Iterable[str]) -> list[Rule]:
    if isinstance(texts, str):
        # It would be taken letter by letter.
        raise InvalidPolicy("policy", None, f"{behavior} is a list: give [{texts!r}]")
    return [parse_rule(text, behavior, "policy") for text in texts]
