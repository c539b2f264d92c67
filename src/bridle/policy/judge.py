"""A policy put to work for one agent: every call gets its verdict, with the reason in words.

The order is fixed: a deny rule, the guard, an ask rule, an allow rule, the preset. Nothing here
raises for what a call holds: what can't be read is asked.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from .bound import BoundRules
from .guard import Guard
from .named_paths import paths_in, unquoted, usual_path
from .partial_paths import globs_of
from .paths import Folders, Place, absolute, clean, is_inside, place
from .policy import Policy
from .presets import PRESETS, Preset, Table
from .rules import DomainPattern, NamePattern, Rule, host_of
from .scripts import ScriptJudge
from .shell.script import ANY
from .tools import COMMAND, EDITS, EXPANDED, FETCH, NAMED, READS, SHELL, SUBAGENTS, Kind, kind_of
from .verdicts import Allowed, Asked, Behavior, Call, Denied, Ground, Verdict
from .wording import OWN_PATH, allowed_by, asked_by, by_preset, denied, doubted, explained

MAX_TEXTS = 2_000
MAX_SHOWN = 200
#: No file has a longer path, and nothing that runs commands by itself a longer name.
MAX_PATH, MAX_NAME = 4096, 1000
#: So many commands that something runs by itself are judged, with so much said to it.
MAX_INLINE, MAX_ARGUMENTS = 100, 16_384
#: So many folders, globs and slashes are looked at in one input, and globs of so many characters.
MAX_FOLDERS, MAX_GLOBS, MAX_SLASHES, MAX_GLOB_TEXT = 4, 200, 4_000, 4_000

ODD_PATH = "Claude Code may take its path for another one: of blanks and rare characters in it, \
versions drop or change some"
TOO_MANY = "there is more in its input than can be looked at"
_GLOB = re.compile(r"[*?\[{]|\(")
UNKNOWN_INLINE = "it may run commands by itself, and not all of them are known"
_LIKE_A_PATH = re.compile(r"/|~|\.{1,2}(?:/|\Z)")

#: In plan mode a rule can't allow these: they change things.
_CHANGES = frozenset[Kind](("edit", "edit elsewhere", "command"))


class Judge:
    """Judges one agent's calls by one policy."""

    def __init__(self, policy: Policy, ground: Ground, table: Table | None = None) -> None:
        self.policy = policy
        self.ground = ground
        self._rules = BoundRules(policy.rules, ground)
        self._guard = Guard(ground) if policy.has_guard else None
        self._scripts = ScriptJudge(self._rules, self._guard, ground)
        plans = f"{ground.claude_home or ground.home.rstrip('/') + '/.claude'}/plans"
        self._plans = {clean(plans), clean(ground.resolve(plans))}
        self._folders = Folders(ground)
        self._table = table or PRESETS[policy.preset]
        self._ours = tuple(f"mcp__{server}__" for server in ground.servers)
        self._kind = self._with_ours if self._ours else kind_of

    def judge(self, call: Call) -> Verdict:
        """Whether the call may be made, must not be, or must be asked about."""
        verdict, usual = self._judged(call), _with_usual_path(call)
        if usual is None or isinstance(verdict, Denied):
            return verdict
        told = self._judged(usual)
        if isinstance(told, Denied) or (isinstance(told, Asked) and told.guard):
            return told
        return Asked(ODD_PATH) if isinstance(verdict, Allowed) else verdict

    def _judged(self, call: Call) -> Verdict:
        is_plan = call.mode == "plan" and self.policy.preset != "plan"
        table = PRESETS["plan"] if is_plan else self._table
        preset: Preset = "plan" if is_plan else self.policy.preset
        if call.tool == SHELL:
            return self._scripts.judge(call, table, preset)
        where = self._place(call)
        if found := self._by_rule("deny", call, where) or self._rules.whole("deny", call.tool):
            return denied(found)
        named = self._named(call)
        if named is None:
            for rule in self._rules.hidden("deny"):
                because = f"{TOO_MANY}, and may be what {rule.text} denies"
                return Denied(rule.text, rule.source, because)
            return Asked(f"a person must see this: {TOO_MANY}", guard=TOO_MANY)
        if found := self._hidden([where for where, _ in named], "deny"):
            return denied(found)
        verdict = self._unguarded(call, where, table, preset)
        if call.tool in EXPANDED:
            verdict = self._with_inline(call, verdict, table, preset)
        if "command" in call.input and kind_of(call.tool) == "other" and call.tool not in NAMED:
            verdict = self._as_script(call, verdict, table, preset)
        if isinstance(verdict, Allowed) and (doubt := self._doubted(named)):
            verdict = doubted(doubt)
        guard = "" if isinstance(verdict, Denied) else self._guarded(call, where, named)
        return Asked(f"a person must see this: {guard}", guard=guard) if guard else verdict

    def _as_script(self, call: Call, verdict: Verdict, table: Table, preset: Preset) -> Verdict:
        """A tool that we do not know may run its command as Bash does: the stricter word counts."""
        as_shell = Call(SHELL, call.input, call.mode, call.cwd)
        told = self._scripts.judge(as_shell, table, preset)
        if isinstance(told, Denied) or (isinstance(told, Asked) and isinstance(verdict, Allowed)):
            return told
        return verdict

    def _with_inline(self, call: Call, verdict: Verdict, table: Table, preset: Preset) -> Verdict:
        """A skill may run commands by itself: the strictest word counts."""
        if isinstance(verdict, Denied):
            return verdict
        for command in self._inline(call):
            if command is None:
                return Asked(UNKNOWN_INLINE)
            as_shell = Call(SHELL, {"command": command}, call.mode, call.cwd)
            told = self._scripts.judge(as_shell, table, preset)
            if isinstance(told, Denied):
                return told
            if isinstance(told, Asked) and not (isinstance(verdict, Asked) and verdict.guard):
                because = f"it runs `{_short(command)}` by itself: {told.because}"
                verdict = Asked(because, told.rule, told.source, told.guard, told.notes)
        return verdict

    def _inline(self, call: Call) -> Sequence[str | None]:
        look = self.ground.inline_commands
        name = call.input.get(EXPANDED[call.tool], "")
        if call.tool in SUBAGENTS:
            of_agent = self.ground.agent_commands
            if isinstance(name, str) and len(name) > MAX_NAME:
                return (None,)
            found = of_agent(name) if of_agent and isinstance(name, str) else ()
            return (None,) if found is None else found
        if look is None:
            return ()
        arguments = call.input.get("args", "")
        if call.tool == COMMAND and isinstance(name, str):
            name, _, arguments = name.strip().removeprefix("/").partition(" ")
        if not isinstance(name, str) or not isinstance(arguments, str | None):
            return (None,)
        if len(name) > MAX_NAME or len(arguments or "") > MAX_ARGUMENTS:
            return (None,)
        if "@" in (arguments or ""):
            return (None,)  # a file that is mentioned is read
        found = look(name, arguments or "")
        return (None,) if found is None or len(found) > MAX_INLINE else found

    def _unguarded(self, call: Call, where: Place | None, table: Table, preset: Preset) -> Verdict:
        kind = self._kind(call.tool)
        if where is None and kind in ("read", "edit"):
            return Asked(f"the path of this {call.tool} can't be read")
        if where and kind == "edit" and not self._folders.hold(where):
            kind = "edit elsewhere"
        if found := self._by_rule("ask", call, where):
            return asked_by(found)
        if doubt := self._hides(call, where) or self._odd_host(call):
            return doubted(doubt)
        if where and where.is_own:
            return Asked(OWN_PATH)
        may_allow = preset != "plan" or kind not in _CHANGES
        if may_allow and (found := self._by_rule("allow", call, where)):
            return allowed_by(found)
        if preset == "plan" and where and self._is_plan_file(where):
            return Allowed("plan file", because="it is the plan that the CLI has the model write")
        return by_preset(table[kind], preset, kind, call.tool)

    def explain(self, call: Call) -> str:
        """The verdict in words: what decided, and why."""
        return explained(self.judge(call))

    # --- parts

    def _with_ours(self, tool: str) -> Kind:
        return "bookkeeping" if tool.startswith(self._ours) else kind_of(tool)

    def _by_rule(self, behavior: Behavior, call: Call, where: Place | None) -> Rule | None:
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

    def _guarded(self, call: Call, where: Place | None, named: list[tuple[Place, bool]]) -> str:
        guard = self._guard
        if guard is None:
            return ""
        if where:
            return self._guarded_file(guard, call, where)
        if self._kind(call.tool) not in ("web", "mcp", "other"):
            return ""
        texts = _texts(call.input)
        if call.tool == FETCH:
            return next(filter(None, map(guard.url, map(_usual_url, texts))), "")
        if len(texts) >= MAX_TEXTS:
            return TOO_MANY
        found = guard.text("\n".join(texts))
        paths = (guard.path(place, writes=True) for place, _ in named)
        wholes = (guard.whole(place) for place, is_like_a_path in named if is_like_a_path)
        patterns = [glob for place, _ in named for glob in _globs(place)]
        if len(patterns) > MAX_GLOBS or sum(map(len, patterns)) > MAX_GLOB_TEXT:
            return TOO_MANY
        globs = (guard.pattern(glob, writes=True) for glob in patterns)
        return found or next(filter(None, (*paths, *wholes, *globs)), "")

    def _named(self, call: Call) -> list[tuple[Place, bool]] | None:
        """The files that a tool which we do not know may be told of: any text may be a path. And
        whether it is written like one, or is a folder. None where there are too many."""
        if call.tool == FETCH or self._kind(call.tool) not in ("web", "mcp", "other"):
            return []
        found: list[tuple[Place, bool]] = []
        texts, folders = paths_in(_texts(call.input)), [call.cwd or self.ground.folder]
        if sum(text.count("/") for text in texts) > MAX_SLASHES:
            return None
        for text in texts:
            where = place(text, folders[0], self.ground)
            is_folder = self._is_folder(where)
            found.append((where, _LIKE_A_PATH.match(text) is not None or is_folder))
            if is_folder and len(folders) <= MAX_FOLDERS:
                folders.append(where.written)
        if len(texts) * (len(folders) - 1) > MAX_TEXTS:
            return None
        # One of them may be the folder of another.
        found += [(place(text, at, self.ground), False) for at in folders[1:] for text in texts]
        return found

    def _is_folder(self, where: Place) -> bool:
        return self.ground.is_folder is not None and self.ground.is_folder(where.real)

    def _hidden(self, named: list[Place], behavior: Behavior) -> Rule | None:
        """A rule for reading files that speaks of one of these."""
        for rule in self._rules.hidden(behavior) if named else ():
            if rule.tool == "Read" and any(map(self._rules.path(rule).matches_either, named)):
                return rule
        return None

    def _doubted(self, named: list[tuple[Place, bool]]) -> Rule | None:
        """A rule for files that may speak of what a tool does which we do not know: it may write,
        or take all that is in a folder."""
        for rule in (*self._rules.hidden("deny"), *self._rules.hidden("ask")) if named else ():
            bound = self._rules.path(rule)
            for where, is_like_a_path in named:
                globs = (glob.replace(ANY, "**") for glob in _globs(where))
                if bound.matches_either(where) or any(map(bound.may_match, globs)):
                    return rule
                if is_like_a_path and bound.reaches(where):
                    return rule
        return None

    def _guarded_file(self, guard: Guard, call: Call, where: Place) -> str:
        found = guard.path(where, writes=call.tool in EDITS)
        if call.tool == "Grep":
            found = found or guard.whole(where)
        glob = call.input.get("pattern") if call.tool == "Glob" else None
        if not found and isinstance(glob, str):
            whole = absolute(glob, where.written, self.ground.home)
            reasons = (guard.pattern(form, writes=False) for form in globs_of(whole))
            found = next(filter(None, reasons), "")
        return found

    def _hides(self, call: Call, where: Place | None) -> Rule | None:
        """A Grep of a folder shows what is in its files, those that may not be read too."""
        if call.tool != "Grep" or where is None:
            return None
        for rule in (*self._rules.hidden("deny"), *self._rules.hidden("ask")):
            if rule.tool == "Read" and self._rules.path(rule).reaches(where):
                return rule
        return None

    def _odd_host(self, call: Call) -> Rule | None:
        """A rule for a host that may be this one, written in a way that is not read."""
        if call.tool != FETCH or host_of(call.input.get("url")) is not None:
            return None
        rules = (*self._rules.about("deny", FETCH), *self._rules.about("ask", FETCH))
        return next((rule for rule in rules if rule.pattern is not None), None)


def _globs(where: Place) -> list[str]:
    """What a path stands for, if a tool takes it for a glob."""
    return globs_of(where.written) if _GLOB.search(where.written) else []


def _short(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def _with_usual_path(call: Call) -> Call | None:
    """The call as another version of the CLI may make it; None where that is the same."""
    field = READS.get(call.tool) or EDITS.get(call.tool)
    path = call.input.get(field) if field else None
    if not isinstance(path, str) or (path.isascii() and path == path.strip()):
        return None
    usual = usual_path(path)
    return None if usual == path else replace(call, input={**call.input, str(field): usual})


def _path(call: Call) -> str | None:
    """The path in the call's input: "" where it has none and needs none, None where it can't be."""
    field = READS.get(call.tool) or EDITS.get(call.tool)
    if field is None:
        return None
    path: Any = call.input.get(field, "")
    if not isinstance(path, str) or "\0" in path or len(path) > MAX_PATH:
        return None
    if not path and call.tool in EDITS:
        return None
    if call.tool in ("Read", "NotebookRead") and not path:
        return None
    return path


def _usual_url(url: str) -> str:
    """As those who read URLs take it."""
    return unquoted(unicodedata.normalize("NFKC", re.sub(r"[\t\r\n]", "", url)))


def _texts(value: object) -> list[str]:
    """All that an input says, in words; of what is very much, its beginning."""
    found: list[str] = []
    waiting: list[Any] = [value]
    while waiting and len(found) < MAX_TEXTS:
        part = waiting.pop()
        if isinstance(part, dict):
            waiting += [*part.keys(), *part.values()]
        elif isinstance(part, list | tuple):
            waiting += part
        elif part is not None:
            found.append(str(part))
    return found
