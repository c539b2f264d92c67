"""A policy: rules over a preset. It can be hashed and written down; `on` puts it to work."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from ..errors import InvalidPolicy
from .delegable import Delegable, DelegableText, delegable
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
    `human_only` are rules for what a person alone may say yes to; `delegate` is what the agent may
    let those below it do (None: what it may do itself without asking).
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
        human_only: Iterable[str | Rule] = (),
        delegate: Iterable[Delegable] | None = None,
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
        self.human_only = _human_only(human_only)
        self.delegate = None if delegate is None else tuple(delegate)

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

    def with_files(self, files: Iterable[str]) -> Policy:
        """The same, as if it had been read from these."""
        return self._with(self.preset, self.rules, tuple(files))

    def _with(
        self, preset: Preset, rules: Iterable[Rule], files: tuple[str, ...] | None = None
    ) -> Policy:
        return Policy(
            preset,
            has_guard=self.has_guard,
            rules=rules,
            files=self.files if files is None else files,
            human_only=self.human_only,
            delegate=self.delegate,
        )

    @property
    def texts(self) -> tuple[RuleText, ...]:
        """Its rules as they are written."""
        return tuple(RuleText(rule.behavior, rule.text, rule.source) for rule in self.rules)

    @property
    def text(self) -> str:
        """What it says, written in one way only, wherever its rules come from."""
        said = sorted({(rule.behavior, rule.text) for rule in self.rules})
        whole: list[object] = [self.preset, self.has_guard, said]
        if self.human_only or self.delegate is not None:
            people = tuple(sorted({rule.text for rule in self.human_only}))
            entries = None if self.delegate is None else tuple(one.text for one in self.delegate)
            whole.append(_More(human_only=people, delegate=entries))
        return msgspec.json.encode(whole).decode()

    @classmethod
    def read(cls, text: str, files: Iterable[str] = ()) -> Policy:
        """The policy that says this, as `text` writes it; InvalidPolicy for what it does not."""
        try:
            said = msgspec.json.decode(text, type=_Said)
        except msgspec.DecodeError as error:
            raise InvalidPolicy("policy", None, f"not the text of a policy: {error}") from error
        entries = said.more.delegate
        return cls(
            said.preset,
            has_guard=said.has_guard,
            rules=[parse_rule(rule, behavior, "policy") for behavior, rule in said.rules],
            files=files,
            human_only=said.more.human_only,
            delegate=None if entries is None else map(_entry, entries),
        )

    @property
    def digest(self) -> str:
        """The hash of what it says."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def on(self, ground: Ground) -> Judge:
        """The policy for one agent."""
        from .judge import Judge  # the judge needs the policy's type
        from .people import PeopleJudge

        return PeopleJudge(self, ground) if self.human_only else Judge(self, ground)


class _More(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What only some policies say: the text of others is as it always was."""

    human_only: tuple[str, ...] = ()
    delegate: tuple[DelegableText, ...] | None = None


class _Said(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    preset: Preset
    has_guard: bool
    rules: list[tuple[Behavior, str]]
    more: _More = _More()


def _entry(text: DelegableText) -> Delegable:
    return delegable(text.rules, count=text.count, seconds=text.seconds, paths=text.paths)


def _parsed(behavior: Behavior, texts: Iterable[str]) -> list[Rule]:
    if isinstance(texts, str):
        # It would be taken letter by letter.
        raise InvalidPolicy("policy", None, f"{behavior} is a list: give [{texts!r}]")
    return [parse_rule(text, behavior, "policy") for text in texts]


def _human_only(given: Iterable[str | Rule]) -> tuple[Rule, ...]:
    if isinstance(given, str):
        raise InvalidPolicy("policy", None, f"human_only is a list: give [{given!r}]")
    return tuple(
        one if isinstance(one, Rule) else parse_rule(one, "ask", "policy") for one in given
    )
