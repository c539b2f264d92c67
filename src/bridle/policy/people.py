"""What a person alone may say yes to, whoever else may be asked about the rest.

A judge of its own: it looks for `human_only` rules wherever ask rules are looked for, also inside
of commands, and what can't be read may be one of them.
"""

from __future__ import annotations

from .bound import BoundRules
from .judge import Judge
from .policy import Policy
from .presets import PRESETS, Table
from .tools import SHELL
from .verdicts import Asked, Call, Denied, Ground, Verdict

#: Then what is asked is so because of a rule, or because it can't be read.
_ALL: Table = dict.fromkeys(PRESETS["ask"], "allow")


class PeopleJudge(Judge):
    """Judges by a policy that has such rules."""

    def __init__(self, policy: Policy, ground: Ground, table: Table | None = None) -> None:
        super().__init__(policy, ground, table)
        rules = Policy("autonomous", rules=policy.human_only, has_guard=False)
        self._people = Judge(rules, ground, _ALL)
        self._bound = BoundRules(policy.human_only, ground)
        self._is_about_commands = bool(self._bound.about("ask", SHELL) or self._bound.hidden("ask"))

    def judge(self, call: Call) -> Verdict:
        verdict = super().judge(call)
        if isinstance(verdict, Denied) or (isinstance(verdict, Asked) and verdict.guard):
            return verdict
        # In plan mode other things are asked: what is said of them there is said already.
        held = self._people.judge(Call(call.tool, call.input, None, call.cwd))
        if not isinstance(held, Asked) or not (held.rule or self._may_hide(call)):
            return verdict
        what = held.rule or held.because
        reason = f"a person alone may say yes to this: {what}"
        return Asked(reason, held.rule, held.source, guard=reason, notes=held.notes)

    def _may_hide(self, call: Call) -> bool:
        """Whether one of the rules could be meant where the call can't be read."""
        is_command = self._is_about_commands and "command" in call.input
        return is_command or bool(self._bound.about("ask", call.tool))
