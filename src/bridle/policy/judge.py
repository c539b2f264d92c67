"""A policy put to work for one agent: every call gets its verdict, with the reason in words.

The order is fixed: a deny rule, the guard, an ask rule, an allow rule, the preset. Nothing here
raises for what a call holds: what can't be read is asked.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .bound import BoundRules
from .guard import Guard
from .paths import Folders, Place, clean, is_inside, place
from .policy import Policy
from .presets import PRESETS
from .rules import DomainPattern, NamePattern, Rule, host_of
from .scripts import ScriptJudge
from .tools import EDITS, FETCH, NAMED, READS, SHELL, Kind, kind_of
from .verdicts import Allowed, Asked, Behavior, Call, Denied, Ground, Verdict
from .wording import allowed_by, asked_by, by_preset, denied

#: In plan mode a rule can't allow these: they change things.
_CHANGES = frozenset[Kind](("edit", "edit elsewhere", "command"))


class Judge:
    """Judges one agent's calls by one policy."""

    def __init__(self, policy: Policy, ground: Ground) -> None:
        self.policy = policy
        self.ground = ground
        self._rules = BoundRules(policy.rules, ground)
        self._guard = Guard(ground) if policy.has_guard else None
        self._scripts = ScriptJudge(self._rules, self._guard, ground)
        plans = f"{ground.claude_home or ground.home.rstrip('/') + '/.claude'}/plans"
        self._plans = {clean(plans), clean(ground.resolve(plans))}
        self._folders = Folders(ground)
        self._table = PRESETS[policy.preset]

    def judge(self, call: Call) -> Verdict:
        """Whether the call may be made, must not be, or must be asked about."""
        is_plan = call.mode == "plan" and self.policy.preset != "plan"
        table = PRESETS["plan"] if is_plan else self._table
        preset = "plan" if is_plan else self.policy.preset
        if call.tool == SHELL:
            return self._scripts.judge(call, table, preset)
        kind = kind_of(call.tool)
        where = self._place(call)
        if where is None and (call.tool in EDITS or (call.tool in READS and _path(call) != "")):
            return Asked(f"the path of this {call.tool} can't be read")
        if where and kind == "edit":
            kind = "edit" if self._folders.hold(where) else "edit elsewhere"
        if found := self._by_rule(("deny",), call, where):
            return denied(found)
        if guard := self._guarded(call, where):
            return Asked(f"a person must see this: {guard}", guard=guard)
        if found := self._by_rule(("ask",), call, where):
            return asked_by(found)
        if where and (hidden := self._hides(call, where)):
            return Asked(
                f"it would also search what {hidden.text} denies", hidden.text, hidden.source
            )
        may_allow = preset != "plan" or kind not in _CHANGES
        if may_allow and (found := self._by_rule(("allow",), call, where)):
            return allowed_by(found)
        if preset == "plan" and where and self._is_plan_file(where):
            return Allowed("plan file", because="it is the plan that the CLI has the model write")
        return by_preset(table[kind], preset, kind, call.tool)

    def explain(self, call: Call) -> str:
        """The verdict in words: what decided, and why."""
        verdict = self.judge(call)
        by = f"{verdict.rule} ({verdict.source})" if verdict.source else verdict.rule
        match verdict:
            case Allowed():
                return (
                    f"Allowed by {by}: {verdict.because}" if verdict.because else f"Allowed by {by}"
                )
            case Denied():
                return f"Denied by {by}: {verdict.because}"
            case Asked():
                notes = "".join(f"; {note}" for note in verdict.notes)
                return f"Asked{f' by {by}' if by else ''}: {verdict.because}{notes}"

    # --- parts

    def _by_rule(
        self, behaviors: Iterable[Behavior], call: Call, where: Place | None
    ) -> Rule | None:
        for behavior in behaviors:
            for rule in self._rules.about(behavior, call.tool):
                if self._matches(rule, call, where):
                    return rule
        return None

    def _matches(self, rule: Rule, call: Call, where: Place | None) -> bool:
        if rule.pattern is None:
            return True
        if where is not None:
            bound = self._rules.path(rule)
            return (
                bound.matches_both(where)
                if rule.behavior == "allow"
                else bound.matches_either(where)
            )
        if isinstance(rule.pattern, DomainPattern):
            host = host_of(call.input.get("url"))
            return host is not None and rule.pattern.matches(host)
        if isinstance(rule.pattern, NamePattern):
            name = call.input.get(NAMED.get(call.tool, ""))
            return isinstance(name, str) and rule.pattern.matches(name)
        return False

    def _place(self, call: Call) -> Place | None:
        path = _path(call)
        if path is None:
            return None
        cwd = call.cwd or self.ground.folder
        return place(path or cwd, cwd, self.ground)

    def _is_plan_file(self, where: Place) -> bool:
        """Where the CLI has its model write a plan."""
        return all(
            path.endswith(".md") and any(is_inside(path, plans) for plans in self._plans)
            for path in (where.written, where.real)
        )

    def _guarded(self, call: Call, where: Place | None) -> str:
        if self._guard is None:
            return ""
        if where and (found := self._guard.path(where, writes=call.tool in EDITS)):
            return found
        if call.tool == FETCH or call.tool.startswith("mcp__"):
            return self._guard.text(_texts(call.input))
        return ""

    def _hides(self, call: Call, where: Place) -> Rule | None:
        """A Grep of a folder shows what is in its files, those that may not be read too."""
        if call.tool != "Grep":
            return None
        for rule in self._rules.about("deny", "Read"):
            if rule.pattern is not None and self._rules.path(rule).reaches_below(where.written):
                return rule
        return None


def _path(call: Call) -> str | None:
    """The path in the call's input: "" where it has none and needs none, None where it can't be."""
    field = READS.get(call.tool) or EDITS.get(call.tool)
    if field is None:
        return None
    path: Any = call.input.get(field, "")
    if not isinstance(path, str) or "\0" in path or (not path and call.tool in EDITS):
        return None
    if call.tool in ("Read", "NotebookRead") and not path:
        return None
    return path


def _texts(value: object) -> str:
    """All text in an input, one per line."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "\n".join(_texts(part) for part in value.values())
    if isinstance(value, list | tuple):
        return "\n".join(_texts(part) for part in value)
    return ""
