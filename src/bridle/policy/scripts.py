"""Shell commands: a script is allowed only if every program that it runs is, wherever it stands.

What deny and ask rules, the guard and path rules have to say is said of every program by itself,
also of those inside of others. What is not known is asked, whatever is allowed.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from .bound import BoundRules, CommandRule, unsplit
from .commands import JOINED
from .guard import TOO_MANY, UNBOXED, Guard
from .partial_paths import Bindings
from .paths import Folders, Place
from .presets import Preset, Table
from .rules import Rule
from .script import MOVES, OPENERS, SINKS, Script
from .shell.programs import Argv, Program, read_commands
from .shell.script import Redirect, Word
from .tools import SHELL
from .verdicts import Allowed, Asked, Behavior, Call, Denied, Ground, Verdict
from .within import perhaps_within, surely_within
from .wording import OWN_PATH, allowed_by, asked_by, by_preset, denied, doubted

#: A longer command is not read: everybody would wait for that, and no person can judge it by eye.
MAX_COMMAND = 16_384
TOO_LONG = f"the command has more than {MAX_COMMAND // 1024} KB"


class ScriptJudge:
    """Judges the commands of one agent."""

    def __init__(self, rules: BoundRules, guard: Guard | None, ground: Ground) -> None:
        self._rules = rules
        self._guard = guard
        self._ground = ground
        self._folders = Folders(ground)

    def judge(self, call: Call, table: Table, preset: Preset) -> Verdict:
        if whole := self._rules.whole("deny", SHELL):
            return denied(whole)
        text = call.input.get("command")
        if not isinstance(text, str) or not text.strip():
            return Asked("there is no command to be read in it")
        if len(text) > MAX_COMMAND:
            return self._too_long()
        script = Script(text, read_commands(text), call.cwd or self._ground.folder, self._ground)
        if found := self._surely("deny", script) or self._touched("deny", script):
            return denied(found)
        verdict = self._asked(script) or _Allowing(self, script, table, preset).verdict()
        if isinstance(verdict, Allowed):
            verdict = self._unknown(script, table) or verdict
        guard = "" if isinstance(verdict, Denied) else self._guarded(script, call)
        return Asked(f"a person must see this: {guard}", guard=guard) if guard else verdict

    def _too_long(self) -> Verdict:
        """Where nobody has read it, it may be what a rule denies."""
        rules = (*self._rules.about("deny", SHELL), *self._rules.hidden("deny"))
        for rule in rules:
            return Denied(rule.text, rule.source, f"{TOO_LONG}, and may be what {rule.text} denies")
        return Asked(TOO_LONG, guard=TOO_LONG)

    # --- deny and ask

    def _asked(self, script: Script) -> Asked | None:
        if whole := self._rules.whole("ask", SHELL):
            return asked_by(whole)
        if found := self._surely("ask", script) or self._touched("ask", script):
            return asked_by(found)
        if script.has_own_paths():
            return Asked(OWN_PATH)
        for behavior in ("deny", "ask"):
            if doubt := self._perhaps(behavior, script):
                return doubted(doubt)
        return None

    def _unknown(self, script: Script, table: Table) -> Asked | None:
        """A file of which nothing is known may be one of Bridle's. Who may run all commands could
        read those in other ways as well."""
        if not self._guard or not self._guard.has_home:
            return None
        if table["command"] == "allow" or self._rules.whole("allow", SHELL):
            return None
        name = next(script.unknown_files(OPENERS), "")
        words = f"`{name}` is given a file of which nothing is known: it may be Bridle's"
        return Asked(words) if name else None

    def _surely(self, behavior: Behavior, script: Script) -> Rule | None:
        if not self._rules.has(behavior):
            return None
        if exact := self._rules.exact(behavior, script.text):
            return exact
        if not self._rules.for_commands(behavior):
            return None
        wanted = partial(self._rules.may_name, behavior)
        for program in script.every:
            for given in (program, *surely_within(program, wanted)):
                for argv, words in self._forms(given):
                    for rule, pattern in self._rules.commands(behavior, argv[0] or ""):
                        if pattern.matches(argv) or pattern.matches_around_options(argv, words):
                            return rule
        return None

    def _perhaps(self, behavior: Behavior, script: Script) -> Rule | None:
        """A rule that may speak of what is not known."""
        if not self._rules.has(behavior):
            return None
        if found := self._within(behavior, script):
            return found
        hidden = self._rules.hidden(behavior)
        if script.has_unknown and (found := self._doubted(behavior, script)):
            return found
        if hidden and script.has_unknown_paths():
            return hidden[0]
        return next((rule for rule in hidden if self._may_show(rule, script)), None)

    def _may_show(self, rule: Rule, script: Script) -> bool:
        bound = self._rules.path(rule)
        if any(map(bound.may_match, script.globs())):
            return True
        return rule.tool == "Read" and (
            any(map(bound.reaches, script.searched()))
            or any(map(bound.may_reach, script.searched_partial()))
        )

    def _doubted(self, behavior: Behavior, script: Script) -> Rule | None:
        bindings: Bindings | None = None
        for program in script.every:
            if None in program.argv:
                for argv, words in self._forms(program):
                    for rule, pattern in self._rules.commands(behavior, argv[0] or ""):
                        if pattern.may_match(argv, words):
                            # All that it says of its variables is put in once.
                            bindings = bindings or Bindings(read_commands(script.text).variables)
                            if pattern.may_match(argv, unsplit(words, bindings)):
                                return rule
        return None

    def _within(self, behavior: Behavior, script: Script) -> Rule | None:
        """A rule for a command that a program may run which we do not know."""
        if not (any_rule := self._rules.for_commands(behavior)):
            return None
        wanted = partial(self._rules.may_name, behavior)
        for program in script.every:
            for given in perhaps_within(program, wanted):
                if given is None:
                    return any_rule
                for argv, words in self._forms(given):
                    for rule, pattern in self._rules.named(behavior, argv[0] or ""):
                        if pattern.may_match(argv, words):
                            return rule
        return None

    def _forms(self, program: Program) -> list[tuple[Argv, tuple[Word, ...]]]:
        """As it is called, and by its name alone; `git-push` is `git push` too."""
        argv, words = program.argv, program.words
        name, base = argv[0] or "", program.name
        names = {name, base}
        if self._ground.ignores_case:
            names |= {one.lower() for one in names}
        found = [((one, *argv[1:]), words) for one in names] if len(names) > 1 else [(argv, words)]
        for one in names:
            if one.startswith(JOINED):
                first, _, second = one.partition("-")
                found.append(((first, second, *argv[1:]), (*words[:1], *words)))
        return found

    def _touched(self, behavior: Behavior, script: Script) -> Rule | None:
        """A rule for files that speaks of one which the script names, or writes by redirection."""
        if not self._rules.has(behavior):
            return None
        for rule in self._rules.hidden(behavior):
            named = script.places() if rule.tool == "Read" else script.changed()
            if named and any(map(self._rules.path(rule).matches_either, named)):
                return rule
        written = [redirect for redirect in script.redirects if redirect.writes]
        for rule in self._rules.about(behavior, "Write") if written else ():
            if any(self._writes(rule, script, redirect) for redirect in written):
                return rule
        return None

    def _writes(self, rule: Rule, script: Script, redirect: Redirect) -> bool:
        if redirect.target.value in SINKS:
            return False
        if rule.pattern is None:
            return True
        return any(map(self._rules.path(rule).matches_either, script.targets(redirect)))

    # --- the guard

    def _guarded(self, script: Script, call: Call) -> str:
        if self._guard is None:
            return ""
        if call.input.get("dangerouslyDisableSandbox"):
            return UNBOXED
        if script.is_too_much:
            return TOO_MANY
        return next(filter(None, self._reasons(self._guard, script)), "")

    def _reasons(self, guard: Guard, script: Script) -> Iterator[str]:
        """Why a person must be asked about a script; "" where one of many looks finds nothing."""
        yield from map(guard.text, (script.text, *script.texts()))
        yield guard.named(script.text)
        yield from map(guard.whole, script.searched())
        yield from map(guard.whole_pattern, script.searched_partial())
        if found := script.git_runs():
            yield f"git would run {found}; if you trust this repository: `bridle trust`"
        for program in script.every:
            partial = script.partial(program) if script.has_unknown else ()
            reads = script.reads(program)
            yield guard.program(program, script.named(program), partial, reads=reads)
        yield from self._guarded_targets(guard, script)

    def _guarded_targets(self, guard: Guard, script: Script) -> Iterator[str]:
        for redirect in script.redirects:
            for where in script.targets(redirect):
                yield guard.path(where, writes=redirect.writes)
            for form in script.partial_targets(redirect):
                yield guard.pattern(form, writes=redirect.writes)

    # --- for what is allowed

    def rule_for(self, program: Program) -> CommandRule | None:
        for rule, pattern in self._rules.commands("allow", program.argv[0] or ""):
            if pattern.matches(program.argv):
                return rule, pattern
        return None

    def strays(self, script: Script, program: Program) -> bool:
        """Whether a `cd` may leave the agent's folders."""
        if program.name not in MOVES:
            return False
        targets = script.moved_to(program)
        return targets is None or not all(map(self._folders.hold, targets))

    def may_edit(self, where: Place, table: Table, *, with_rules: bool) -> bool:
        if table["edit"] == "allow" and self._folders.hold(where):
            return True
        rules = self._rules.about("allow", "Write") if with_rules else ()
        return any(r.pattern is None or self._rules.path(r).matches_both(where) for r in rules)

    def allows_all(self, script: Script) -> tuple[Rule | None, Rule | None]:
        """The rules that allow this very text, and all commands."""
        return self._rules.exact("allow", script.text), self._rules.whole("allow", SHELL)


class _Allowing:
    """Whether rules and a preset allow one script; and if not, why."""

    def __init__(self, judge: ScriptJudge, script: Script, table: Table, preset: Preset) -> None:
        self._judge = judge
        self._script = script
        self._table = table
        self._preset = preset
        self._with_rules = preset != "plan"
        self._used: dict[str, Rule | None] = {}

    def verdict(self) -> Verdict:
        script, table = self._script, self._table
        exact, whole = self._judge.allows_all(script) if self._with_rules else (None, None)
        if not script.unclear:
            if rule := exact or whole:
                return allowed_by(rule)
            if table["command"] == "allow":
                return by_preset("allow", self._preset, "command", SHELL)
        if not script.unclear and not script.changes and not (why := self._why()):
            return self._allowed()
        if self._is_denied():
            return by_preset("deny", self._preset, "command", self._culprit())
        reason = script.unclear or script.changes
        if reason:
            return Asked(f"the command can't be judged: {reason}", notes=script.notes())
        return Asked(why, notes=script.notes())

    def _allowed(self) -> Allowed:
        named = [rule for rule in self._used.values() if rule]
        if not named:
            return Allowed(f"preset {self._preset}", because="it only reads")
        rules = dict.fromkeys(rule.text for rule in named)
        return Allowed(", ".join(rules), named[0].source)

    def _why(self) -> str:
        """Why it is not allowed; nothing where it is."""
        for program in self._script.programs:
            if not self._may_run(program):
                return f"no rule allows `{_shown(program)}`"
        for redirect in self._script.redirects:
            if not self._may_open(redirect):
                name = redirect.target.value or "a file that is not known"
                return f"no rule allows to {'write' if redirect.writes else 'read'} {name}"
        if not self._used:
            return f"no rule speaks of it, and {self._preset} asks about commands"
        return ""

    def _culprit(self) -> str:
        """What of it is not allowed, in a word."""
        script = self._script
        for program in script.programs:
            if not self._may_run(program):
                return program.name
        if script.unclear or script.changes:
            return script.unclear or script.changes
        written = (r.target.value for r in script.redirects if not self._may_open(r))
        return f"writing {next(written, None) or 'a file that is not known'}"

    def _may_run(self, program: Program) -> bool:
        reads = self._table["reading command"] == "allow" and self._script.reads(program)
        if reads and not self._judge.strays(self._script, program):
            self._used[program.name] = None
            return True
        found = self._judge.rule_for(program) if self._with_rules else None
        if found:
            rule, pattern = found
            self._used[program.name] = rule
            # One that names the inner program as well speaks of it too.
            if not program.inner or pattern.fixed > program.reach > 0:
                return True
            if program.is_odd:
                return False
        is_free = program.is_clear or (
            program.argv[0] in MOVES and not self._judge.strays(self._script, program)
        )
        return bool(found or is_free) and all(map(self._may_run, program.inner))

    def _may_open(self, redirect: Redirect) -> bool:
        if redirect.target.value in SINKS:
            return True
        if redirect.target.value is None:
            return False  # it may even be a connection
        if not redirect.writes:
            return True
        targets = self._script.targets(redirect)
        return bool(targets) and all(
            self._judge.may_edit(where, self._table, with_rules=self._with_rules)
            for where in targets
        )

    def _is_denied(self) -> bool:
        """Whether the preset says no to what no rule allows."""
        script = self._script
        is_known = not script.unclear and not script.changes and script.is_reading()
        if self._table["command"] == "deny" and not is_known:
            return True
        return self._table["edit"] == "deny" and any(
            redirect.writes and not self._may_open(redirect) for redirect in script.redirects
        )


def _shown(program: Program) -> str:
    text = " ".join("…" if word is None else word for word in program.argv)
    return text if len(text) <= 80 else f"{text[:79]}…"
