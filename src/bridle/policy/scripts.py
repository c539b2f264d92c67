"""Shell commands: a script is allowed only if every program that it runs is, wherever it stands.

What deny and ask rules, the guard and path rules have to say is said of every program by itself,
also of those inside of others. What is not known is asked, whatever is allowed.
"""

from __future__ import annotations

from collections.abc import Iterator

from .bound import BoundRules
from .commands import CommandPattern
from .guard import UNBOXED, Guard
from .paths import Folders, Place
from .presets import Preset, Table
from .reading import is_reading
from .rules import Rule
from .script import MOVES, SINKS, Script
from .shell.programs import Program, base_name, read_commands
from .shell.script import Redirect
from .tools import SHELL
from .verdicts import Allowed, Asked, Behavior, Call, Denied, Ground, Verdict
from .wording import allowed_by, asked_by, by_preset, denied


class ScriptJudge:
    """Judges the commands of one agent."""

    def __init__(self, rules: BoundRules, guard: Guard | None, ground: Ground) -> None:
        self._rules = rules
        self._guard = guard
        self._ground = ground
        self._folders = Folders(ground)
        self._hidden = [
            rule
            for behavior in ("deny", "ask")
            for tool in ("Read", "Edit")
            for rule in rules.about(behavior, tool)
            if rule.pattern is not None
        ]

    def judge(self, call: Call, table: Table, preset: Preset) -> Verdict:
        text = call.input.get("command")
        if not isinstance(text, str) or not text.strip():
            return Asked("there is no command to be read in it")
        script = Script(text, read_commands(text), call.cwd or self._ground.folder, self._ground)
        return (
            self._denied(script)
            or self._guarded(script, call)
            or self._asked(script)
            or self._allowed(script, table, preset)
            or self._left(script, table, preset)
        )

    # --- deny and ask

    def _denied(self, script: Script) -> Denied | None:
        found = self._surely("deny", script)
        if found is None and self._hidden:
            found = next(self._touched("deny", script), None)
        return denied(found) if found else None

    def _asked(self, script: Script) -> Asked | None:
        found = self._surely("ask", script) or next(self._touched("ask", script), None)
        if found:
            return asked_by(found)
        for behavior in ("deny", "ask"):
            if doubt := self._perhaps(behavior, script):
                reason = f"it can't be known whether {doubt.text} speaks of it"
                return Asked(reason, doubt.text, doubt.source)
        return None

    def _surely(self, behavior: Behavior, script: Script) -> Rule | None:
        if whole := self._rules.whole_shell(behavior):
            return whole
        if exact := self._rules.exact(behavior, script.text):
            return exact
        for program in script.all_programs():
            for rule, pattern in self._about(behavior, program):
                if pattern.surely_matches(program.argv):
                    return rule
        return None

    def _perhaps(self, behavior: Behavior, script: Script) -> Rule | None:
        for program in script.all_programs():
            if None in program.argv:
                for rule, pattern in self._about(behavior, program):
                    if pattern.may_match(program.argv):
                        return rule
        if self._hidden and script.has_unknown_paths():
            return next((rule for rule in self._hidden if rule.behavior == behavior), None)
        for glob in script.globs() if self._hidden else ():
            for rule in self._hidden:
                if rule.behavior == behavior and self._rules.path(rule).may_match(glob):
                    return rule
        return None

    def _about(self, behavior: Behavior, program: Program) -> Iterator[tuple[Rule, CommandPattern]]:
        name = program.argv[0] or ""
        names = {name, base_name(name)}
        if self._ground.ignores_case:
            names |= {one.lower() for one in names}
        yield from self._rules.commands(behavior, *names)

    def _touched(self, behavior: Behavior, script: Script) -> Iterator[Rule]:
        """Path rules that speak of a file which the script names."""
        for rule in self._hidden:
            if rule.behavior != behavior:
                continue
            bound = self._rules.path(rule)
            if rule.tool in ("Read", "Edit") and any(map(bound.matches_either, script.places())):
                yield rule

    # --- the guard

    def _guarded(self, script: Script, call: Call) -> Asked | None:
        if self._guard is None:
            return None
        found = UNBOXED if call.input.get("dangerouslyDisableSandbox") else ""
        found = found or self._guard.text(script.text)
        for program in script.programs:
            found = found or self._guarded_program(script, program)
        for redirect in script.redirects:
            for where in script.targets(redirect):
                found = found or self._guard.path(where, writes=redirect.writes)
        if not found:
            return None
        return Asked(f"a person must see this: {found}", guard=found)

    def _guarded_program(self, script: Script, program: Program) -> str:
        assert self._guard
        for inner in program.inner:
            if found := self._guarded_program(script, inner):
                return found
        return self._guard.program(program, script.named(program))

    # --- allow

    def _allowed(self, script: Script, table: Table, preset: Preset) -> Allowed | None:
        """By rules, and by the preset for what they leave; not if anything is unclear."""
        is_plan = preset == "plan"
        exact = None if is_plan else self._rules.exact("allow", script.text)
        if exact:
            return allowed_by(exact)
        if script.unclear:
            return None
        whole = None if is_plan else self._rules.whole_shell("allow")
        if whole:
            return allowed_by(whole)
        by: dict[str, Rule | None] = {}
        for program in script.programs:
            if not self._may_run(script, program, table, by, with_rules=not is_plan):
                return None
        if not by or self._refused(script, table, with_rules=not is_plan):
            return None
        named = [rule for rule in by.values() if rule]
        if not named:
            return Allowed(f"preset {preset}", because="it only reads")
        rules = dict.fromkeys(rule.text for rule in named)
        return Allowed(", ".join(rules), named[0].source)

    def _may_run(
        self,
        script: Script,
        program: Program,
        table: Table,
        by: dict[str, Rule | None],
        *,
        with_rules: bool,
    ) -> bool:
        if table["command"] == "allow" or (
            table["reading command"] == "allow" and is_reading(program)
        ):
            by[program.name] = None
            return not self._strays(script, program) or table["command"] == "allow"
        found = self._rule_for(program) if with_rules else None
        if found:
            rule, pattern = found
            by[program.name] = rule
            # One that names the inner program as well speaks of it too.
            if not program.inner or pattern.fixed > program.reach > 0:
                return True
        is_free = program.is_clear or (program.name in MOVES and not self._strays(script, program))
        if not found and not is_free:
            return False
        return all(
            self._may_run(script, inner, table, by, with_rules=with_rules)
            for inner in program.inner
        )

    def _rule_for(self, program: Program) -> tuple[Rule, CommandPattern] | None:
        for rule, pattern in self._rules.commands("allow", program.argv[0] or ""):
            if pattern.matches(program.argv):
                return rule, pattern
        return None

    def _strays(self, script: Script, program: Program) -> bool:
        """Whether a `cd` may leave the agent's folders."""
        if program.name not in MOVES:
            return False
        targets = script.moved_to(program)
        return targets is None or not all(map(self._folders.hold, targets))

    def _refused(self, script: Script, table: Table, *, with_rules: bool) -> bool:
        """Whether a redirection writes to a file that nothing allows to be edited."""
        return any(
            redirect.writes and not self._may_write(script, redirect, table, with_rules=with_rules)
            for redirect in script.redirects
        )

    def _may_write(
        self, script: Script, redirect: Redirect, table: Table, *, with_rules: bool
    ) -> bool:
        if redirect.target.value in SINKS or table["edit elsewhere"] == "allow":
            return not (redirect.target.value or "/dev/tcp").startswith(("/dev/tcp", "/dev/udp"))
        targets = script.targets(redirect)
        return bool(targets) and all(self._may_edit(where, table, with_rules) for where in targets)

    def _may_edit(self, where: Place, table: Table, with_rules: bool) -> bool:
        if table["edit"] == "allow" and self._folders.hold(where):
            return True
        rules = self._rules.about("allow", "Write") if with_rules else ()
        return any(r.pattern is None or self._rules.path(r).matches_both(where) for r in rules)

    # --- the rest

    def _left(self, script: Script, table: Table, preset: Preset) -> Verdict:
        """Not denied and not allowed: asked, or denied by the preset."""
        if table["command"] == "deny" and not script.is_reading():
            return by_preset("deny", preset, "command", script.first_name() or SHELL)
        if script.unclear:
            return Asked(f"the command can't be judged: {script.unclear}")
        return Asked(self._why(script, table, preset), notes=script.notes())

    def _why(self, script: Script, table: Table, preset: Preset) -> str:
        for program in script.programs:
            if not self._may_run(script, program, table, {}, with_rules=preset != "plan"):
                return f"no rule allows `{_shown(program)}`"
        for redirect in script.redirects:
            if redirect.writes and not self._may_write(
                script, redirect, table, with_rules=preset != "plan"
            ):
                return (
                    f"no rule allows to write {redirect.target.value or 'a file that is not known'}"
                )
        return f"no rule speaks of it, and {preset} asks about commands"


def _shown(program: Program) -> str:
    text = " ".join("…" if word is None else word for word in program.argv)
    return text if len(text) <= 80 else f"{text[:79]}…"
