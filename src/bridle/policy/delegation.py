"""What an agent may let those below it do: say yes to when they ask, and have them do unasked.

Owns both answers, and what holds for a session below others; who is asked, and what was granted
until now, is known elsewhere. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from .delegable import Delegable
from .judge import Judge
from .paths import PathPattern, place
from .people import PeopleJudge
from .policy import Policy
from .presets import PRESETS, Table
from .rules import Rule
from .tools import kind_of
from .verdicts import Allowed, Asked, Call, Denied, Ground, Verdict

#: By no preset: then what is allowed is so by a rule.
NOTHING: Table = dict.fromkeys(PRESETS["ask"], "ask")
#: The key of a grant by no entry: by what the agent may do itself.
OWN = "own"


class Granted(Struct, frozen=True):
    """It may say yes. `rule` entitles it, `key` names the entry under which that is counted."""

    rule: str
    key: str
    is_limited: bool


class Refused(Struct, frozen=True):
    """It may not; `because` says what somebody else should know who is asked instead."""

    because: str


class Delegation:
    """What one agent may delegate, under its policy and on its own ground.

    `above` are the delegations of its own ancestors: it hands on no more than it was handed.
    """

    def __init__(self, policy: Policy, ground: Ground, above: Sequence[Delegation] = ()) -> None:
        self.policy = policy
        self.ground = ground
        self._above = tuple(above)
        self._own = policy.on(ground)
        self._entries = policy.delegate
        self._judges: dict[tuple[object, ...], RulesAlone] = {}

    # --- when somebody below asks

    def grant(
        self, call: Call, *, folder: str, age: float, used: Mapping[str, int]
    ) -> Granted | Refused:
        """Whether it may say yes to this call of a session that works in `folder`. `age` is how
        long ago the agent's session was created, `used` how much was granted under each key."""
        call = _in_folder(call, folder)
        for one in self._above:
            verdict = one.ceiling(call, folder)
            if not isinstance(verdict, Allowed):
                return Refused(f"those above it may not delegate it: {verdict.because}")
        if self._entries is None:
            verdict = self._own.judge(call)
            if isinstance(verdict, Allowed):
                return Granted(verdict.rule, OWN, is_limited=False)
            return Refused(f"its own policy does not allow it without asking: {verdict.because}")
        return self._by_entry(call, folder, age, used)

    def _by_entry(
        self, call: Call, folder: str, age: float, used: Mapping[str, int]
    ) -> Granted | Refused:
        entries = [one for one in self._entries or () if self._is_there(one, folder)]
        free = [one for one in entries if not one.is_limited]
        verdict = self._judge(free, asks=False).judge(call)
        if isinstance(verdict, Allowed):
            return Granted(verdict.rule, free[0].key, is_limited=False)
        if isinstance(verdict, Denied) or verdict.guard:
            return Refused(verdict.because)
        over, none = "", f"its policy lets it delegate nothing of the kind: {verdict.because}"
        for entry in entries:
            if not entry.is_limited:
                continue
            verdict = self._judge([entry, *free], asks=False).judge(call)
            if isinstance(verdict, Allowed):
                if spent := _spent(entry, age, used):
                    over = spent
                    continue
                return Granted(verdict.rule, entry.key, is_limited=True)
        return Refused(over or self._elsewhere(call, folder, free) or none)

    def _elsewhere(self, call: Call, folder: str, free: Sequence[Delegable]) -> str:
        """Where it may delegate this, if that is not where the session works."""
        for entry in self._entries or ():
            if self._is_there(entry, folder):
                continue
            if isinstance(self._judge([entry, *free], asks=False).judge(call), Allowed):
                rules, paths = ", ".join(rule.text for rule in entry.rules), ", ".join(entry.paths)
                return f"it may delegate {rules} only to sessions in {paths}, not in {folder}"
        return ""

    # --- what those below do unasked

    def ceiling(self, call: Call, folder: str = "") -> Verdict:
        """What a session below it that works in `folder` may do at most, without that somebody is
        asked. Entries with a limit do not count: each use of them is a grant.

        What the agent itself may read, and its own bookkeeping, needs no entry.
        """
        call = _in_folder(call, folder)
        own = self._own.judge(call)
        if self._entries is None:
            return own
        entries = [e for e in self._entries if not e.is_limited and self._is_there(e, folder)]
        verdict = self._judge(entries, asks=True).judge(call)
        if not isinstance(verdict, Asked) or verdict.guard:
            return verdict
        if isinstance(own, Denied) or self._is_looking(call):
            return own
        return verdict

    def _is_looking(self, call: Call) -> bool:
        kind = kind_of(call.tool)
        ours = tuple(f"mcp__{server}__" for server in self.ground.servers)
        return kind in ("read", "bookkeeping") or bool(ours and call.tool.startswith(ours))

    # --- parts

    def _judge(self, entries: Sequence[Delegable], *, asks: bool) -> RulesAlone:
        """One that allows by the rules of these entries alone. What the policy denies, and what
        only a person may say yes to, holds in any case; what it wants asked, where nobody is."""
        key = (asks, *(id(entry) for entry in entries))  # they live as long as the policy
        if key not in self._judges:
            kept = ("deny", "ask") if asks else ("deny",)
            rules = [rule for rule in self.policy.rules if rule.behavior in kept]
            rules += [rule for entry in entries for rule in entry.rules]
            self._judges[key] = RulesAlone(self.policy, rules, self.ground)
        return self._judges[key]

    def _is_there(self, entry: Delegable, folder: str) -> bool:
        """Whether a session in this folder is one of those that an entry is for."""
        if not entry.paths:
            return True
        if not folder:
            return False
        where = place(folder, self.ground.folder, self.ground)
        bound = (PathPattern(path).bind(self.ground, covers_below=False) for path in entry.paths)
        return any(one.matches_both(where) for one in bound)


class RulesAlone:
    """Judges by these rules and nothing else: with the guards of a policy, and without a preset,
    be it that of a mode."""

    def __init__(self, policy: Policy, rules: Sequence[Rule], ground: Ground) -> None:
        made = Policy(has_guard=policy.has_guard, rules=rules, human_only=policy.human_only)
        kind = PeopleJudge if policy.human_only else Judge
        self._judge = kind(made, ground, NOTHING)

    def judge(self, call: Call) -> Verdict:
        return self._judge.judge(replace(call, mode=None) if call.mode else call)


def _in_folder(call: Call, folder: str) -> Call:
    """What it names is in the folder of the session that makes it, not in that of one above."""
    return call if call.cwd or not folder else replace(call, cwd=folder)


def _spent(entry: Delegable, age: float, used: Mapping[str, int]) -> str:
    """Why an entry that speaks of the call is of no use any more."""
    rules = ", ".join(rule.text for rule in entry.rules)
    if entry.seconds is not None and age > entry.seconds:
        return f"it might delegate {rules} for {entry.seconds:g} seconds, and they are over"
    if entry.count is not None and used.get(entry.key, 0) >= entry.count:
        return f"it might delegate {rules} {entry.count} times, and has"
    return ""
