"""Random shell scripts, from a grammar and by damaging what the grammar made.

Half of it is plain, so that a strict reader takes it; the other half is what readers get wrong.
Owns the making of texts. The same seed makes the same script.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

#: Strings that run a command where a shell evaluates them.
NASTY = (
    "a[$(h1)]",
    "path[$(h2)]",
    "$(h3)",
    "`h4`",
    "h5",
    "x[`h6`]",
    "-v",
    "$(h7 >f8)",
    "%d",
    "-eq",
)
_KEYWORDS = (
    "if then elif else fi for while until do done case esac in select function time { } ! [[ ]]"
)
_PLAIN = (
    "a",
    "b",
    "-x",
    "--y=z",
    "a.b",
    "1",
    "22",
    "x=y",
    "a,b",
    "./a",
    "-",
    "--",
    "%",
    "@",
    "a:b",
    "+",
)
_BUILTINS = (
    ": true false pwd set_-e set_-u set_-euo_pipefail export_x=1 export_y export_x=a:~ local_x=2"
    " read_x read_-r_x_y shift wait exit_0 return_0 break continue [_-f_in_] [_a_=_b_] test_-n_x"
    " printf_%s_a printf_%s%b_x_y [_1_-eq_1_] [_!_-e_in_] [_-t_x_]"
)
_SEPARATORS = (
    "; ",
    " && ",
    " || ",
    "\n",
    " & ",
    " | ",
    ";",
    "|",
    "&&",
    "&",
    " |& ",
    "\n\n",
    " ;\n",
)
_SPECIAL = "'\"\\`$(){}[]<>|&;#!~*?=%^:@ \t\n-0129abcfhx/é,+"
_PIECES = (
    "$(", "${", "$((", "))", "`", "<<E", "<<'E'", "\nE\n", "<<-E", "<(", ">(", "&&", "||", ";;",
    "<<<", ">&",
    "&>", "2>", "\\\n", "# ", "\n", "$'", '$"', "[[ ", " ]]", "{ ", "; }", "()", "() ",
    "case x in a) ",
    "esac", "if ", "then ", "; fi", "do ", "; done", "time ", "! ", "coproc ", "eval ", "x=", "-p ",
    "\t",
    " h1", "$x", "~", "'a[$(h1)]'", "time -p ", " -- ", "f()\n{", "function f\n", "=", "in ", "&!",
    "$x:",
)  # fmt: skip
_WRAPPERS = (
    "env", "env -i", "env a=1", "env -u x", "env --", "env -", "timeout 5", "timeout -k 1 5",
    "timeout -s KILL 5",
    "timeout --signal=KILL 5", "timeout --preserve-status 5", "nice", "nice -n 5", "nice -5",
    "nice -n5",
    "nohup", "setsid -w", "stdbuf -oL", "stdbuf -o L", "command", "command -p", "command --",
    "builtin", "exec",
    "exec -a b", "exec -c", "xargs", "xargs -n 1", "xargs -I {}", "xargs -I%", "xargs -r",
    "xargs -0", "xargs --",
    "xargs -P 2 -n1", "xargs -I{} -t", "xargs --max-lines=1", "xargs --replace=R",
    "nice --adjustment=3",
    "env -S", "timeout -v 5", "xargs --replace", "xargs --max-lines", "xargs -i", "env -iu x",
    "env x=1 -i",
)  # fmt: skip
_SHELL_OPTIONS = (
    "-c", "-ec", "-xc", "-c --", "-e -c", "--norc -c", "-c -e", "--posix -c", "-lc", "-uc", "+c",
    "-- -c", "- -c",
    "--rcfile in -c", "--verbose -c", "-kc", "+x -c", "-c +x", "-c -", "-O extglob -c", "-i -c",
    "-fc",
)  # fmt: skip


class Writer:
    """Writes one script. `has_wrappers`: also programs that run others."""

    def __init__(self, seed: int, *, has_wrappers: bool = False, is_posix: bool = False) -> None:
        self.random = random.Random(seed)
        self.has_wrappers = has_wrappers
        self.is_posix = is_posix
        self.depth = 0
        #: Bodies that are due at the next newline.
        self.bodies: list[str] = []
        #: How often something is written that no strict reader takes.
        self.oddity = self.random.choice((0.0, 0.0, 0.01, 0.02, 0.1))

    def script(self) -> str:
        text = self.list()
        if self.bodies or self.random.random() < 0.2:
            text += self.newline()
        return text

    def is_odd(self) -> bool:
        return self.random.random() < self.oddity

    def one(self, *choices: Callable[[], str]) -> str:
        return self.random.choice(choices)()

    def pick(self, choices: Sequence[str]) -> str:
        return self.random.choice(choices)

    # --- lists

    def newline(self) -> str:
        text = "\n" + "".join(self.bodies)
        self.bodies.clear()
        return text

    def list(self) -> str:
        self.depth += 1
        text = self.command()
        while self.random.random() < (0.5, 0.4, 0.25, 0.1, 0.05)[min(self.depth, 4)]:
            separator = self.pick(_SEPARATORS)
            if self.is_posix and "|&" in separator:
                separator = " | "
            before, *after = separator.split("\n")
            text += before + "".join(self.newline() for _ in after)
            if self.random.random() < 0.03:
                text += f"# {self.pick(NASTY)} '\"`(" + self.newline()
            text += self.command()
        self.depth -= 1
        return text

    def end(self) -> str:
        return self.one(lambda: "; ", lambda: ";", self.newline, lambda: " ;\t")

    def command(self) -> str:
        if self.depth > 3 or self.random.random() < (0.6, 0.6, 0.75, 0.85)[self.depth]:
            return self.simple()
        forms = [
            self.subshell, self.group, self.condition, self.loop, self.each, self.case,
            self.function, self.negated,
        ]  # fmt: skip
        if not self.is_posix:
            forms += [self.test, self.timed]
        return self.one(*forms) + (self.redirects() if self.random.random() < 0.2 else "")

    def subshell(self) -> str:
        return f"({self.blank()}{self.list()}{self.blank()})"

    def group(self) -> str:
        return f"{{ {self.list()}{self.end()}}}"

    def condition(self) -> str:
        text = f"if {self.list()}{self.end()}then {self.list()}{self.end()}"
        if self.random.random() < 0.2:
            text += f"elif {self.list()}{self.end()}then {self.list()}{self.end()}"
        if self.random.random() < 0.3:
            text += f"else {self.list()}{self.end()}"
        return text + "fi"

    def loop(self) -> str:
        head = self.pick(
            ("while c7", "until c1", "while false", "until true", "while read x", "until c9")
        )
        return f"{head}{self.end()}do {self.list()}{self.end()}{self.pick(('', 'break; '))}done"

    def each(self) -> str:
        words = " ".join(self.word() for _ in range(self.random.randint(1, 2)))
        head = self.pick(
            (f"for i in {words}", f"for x\n in {words}" if not self.bodies else "for i", "for i")
        )
        return f"{head}{self.end()}do {self.list()}{self.end()}done"

    def case(self) -> str:
        text = f"case {self.word()} in {self.pick(('', '('))}{self.pattern()}) "
        text += self.list() + self.blank()
        if self.random.random() < 0.5:
            text += f";;{self.blank()}*) {self.list()} "
        return text + self.pick((";; esac", ";;esac", "\nesac" if not self.bodies else ";; esac"))

    def pattern(self) -> str:
        return self.pick(
            ("a", "*", "a|b", "[ab]", "'x'", "a | *", "?", "h1", "$x", '"a b"', "esac")
        )

    def function(self) -> str:
        name = self.pick(("f", "g", "e", "my-f"))
        body = self.one(self.group, self.group, self.subshell)
        between = self.one(lambda: " ", lambda: "", self.newline)
        head = f"{name}{self.pick(('()', ' ()', '( )'))}{between}"
        if not self.is_posix and self.random.random() < 0.2:
            head = f"function {name} {between}"
        return f"{head}{body}{self.end()}{name} {self.word()}"

    def negated(self) -> str:
        return f"! {self.simple()}"

    def timed(self) -> str:
        odd = self.pick(("time -- ", "time -p\t", "time\t", "time -p -- ", "! time "))
        return f"{odd if self.is_odd() else self.pick(('time ', 'time -p '))}{self.simple()}"

    def test(self) -> str:
        left, right = self.word(), self.word()
        return self.pick(
            (
                f"[[ {left} == {right} ]]",
                f"[[ -n {left} ]]",
                f"[[ {left} && {right} ]]",
                f"[[ ! {left} < {right} ]]",
                f"[[ {left} != a* || -f {right} ]]",
                f"[[ {left} -eq {right} ]]" if self.is_odd() else f"[[ {left} = {right} ]]",
                f"[[ {left} =~ {right} ]]" if self.is_odd() else f"[[ {left} ]]",
                f"[[ -v {left} ]]" if self.is_odd() else f"[[ -z {left} ]]",
            )
        )

    # --- simple commands

    def simple(self) -> str:
        if self.random.random() < 0.05:
            return self.laid_trap()
        if self.random.random() < 0.12:
            return self.pick(_BUILTINS.split()).replace("_", " ")
        text = ""
        while self.random.random() < 0.12:
            text += f"{self.assign()} "
        if text and self.random.random() < 0.3:
            return text.rstrip()
        if self.random.random() < 0.08:
            text += self.redirect().lstrip() + " "
        text += self.name()
        for _ in range(self.random.choice((0, 1, 1, 2, 3))):
            text += self.blank(1) + self.word()
            if self.random.random() < 0.08:
                text += self.redirect()
        if self.random.random() < 0.2:
            text += self.redirects()
        return text

    def name(self) -> str:
        name = self.pick(("c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9"))
        if self.random.random() < 0.08:
            return self.pick(
                (f"'{name}'", f'"{name}"', f"\\{name}", f"c'{name[1]}'", "f", "g", "é", "echo")
            )
        if self.is_odd():
            odd = (
                "eval",
                ".",
                "exec",
                "command",
                "builtin",
                "$x",
                "c{1,2}",
                "coproc",
                "select",
                "alias",
                "trap",
                "let",
            )
            return f"{self.pick(odd)} {name}"
        if self.has_wrappers and self.random.random() < 0.45:
            return self.wrapped(name)
        return name

    def wrapped(self, name: str) -> str:
        if self.random.random() < 0.3:
            return self.shell()
        if self.random.random() < 0.15:
            end = self.pick(("';'", "\\;", "{} +", "+", "+ h1 ';'", "{} + -exec c2 ';'"))
            return (
                f"find . -maxdepth 0 {self.pick(('-exec', '-execdir'))} {name} {self.word()} {end}"
            )
        inner = self.wrapped(name) if self.random.random() < 0.3 else name
        return f"{self.pick(_WRAPPERS)} {inner}"

    def shell(self) -> str:
        name = self.pick(("sh", "bash", "dash"))
        inner = Writer(
            self.random.getrandbits(32), has_wrappers=self.depth < 3, is_posix=name != "bash"
        )
        inner.depth = self.depth + 1
        script = inner.script()
        options = (
            self.pick(_SHELL_OPTIONS[:8])
            if self.random.random() < 0.8
            else self.pick(_SHELL_OPTIONS)
        )
        if self.bodies and "\n" in script:
            script = "c1"
        quoted = script.replace("'", "'\\''")
        return f"{name} {options} '{quoted}'"

    def laid_trap(self) -> str:
        """A string that is harmless until something evaluates it."""
        use = self.pick(
            (
                "c1 $x", 'c1 "$x"', "[ -n $x ]", '[ "$x" = y ]', '[[ $x == "$x" ]]', "printf %s $x",
                'read x <<< "$x"',
                "export x", "c1 ${x:-a}", "c1 ${x#a}", "c1 ${x/a/b}", "c1 <<<$x",
                "for i in $x; do c2; done",
                "case $x in $x) c3;; esac", "x+=$x", "c1 >$x", "c1 $((1+2))", "[ $x -eq 1 ]",
                "[[ $x -eq 1 ]]",
                "c1 $((x))", "(( x ))", "printf %d $x", 'printf "$x" 1', "printf -v $x 1",
                "read $x", "export $x=1",
                "c1 ${!x}", "c1 ${x@P}", "c1 ${a[x]}", "c1 ${a:x}", "a[x]=1", "let x", "$x",
                "eval $x", "unset $x",
                "test -v $x", '[ "$x" ]', '[ ! "$x" ]', "[ -t $x ]", 'exit "$x"', "shift $x",
                "wait -n $x", "set $x",
                'test x "$x" x', "[ a -nt $x ]", 'local "$x"', "return $x", 'test "$x" "$x"',
                'test ! "$x" = a',
            )
        )  # fmt: skip
        return f"x='{self.pick(NASTY)}'{self.end()}{use}"

    def assign(self) -> str:
        name = self.pick(("x", "y", "z", "x", "LANG", "PATH" if self.is_odd() else "x"))
        sign = "=" if self.is_posix else self.pick(("=", "=", "+="))
        return name + sign + self.pick(("", self.part(), self.word()))

    # --- redirections

    def redirects(self) -> str:
        return "".join(self.redirect() for _ in range(self.random.choice((1, 1, 2))))

    def redirect(self) -> str:
        file = self.pick(
            ("f1", "f2", "'f 3'", '"f4"', "f\\5", "/dev/null", "$x", "f*", "f$(c1)", "f6")
        )
        forms = [
            f" >{file}", f" > {file}", f" >>{file}", f" 2>{file}", f" <>{file}", f" >|{file}",
            " <in", " < in", " 2>&1",
            " >&2", " <&-", " 2>&-", f" 1>{file}", f" 9>{file}", f">{file}", "<in", "2>&1",
        ]  # fmt: skip
        if not self.is_posix:
            forms += [
                f" &>{file}",
                f" &>>{file}",
                f" >&{file}",
                f" <<<{self.word()}",
                f" > >({self.inner()})",
            ]
        if self.is_odd():
            forms += [
                f" {{fd}}>{file}",
                f" 12>{file}",
                " >&$x",
                f" 2&>{file}",
                " <<<",
                f" > \\\n{file}",
                f" >&1{file}",
            ]
        if self.depth < 4 and self.random.random() < 0.25:
            return self.heredoc()
        return self.pick(forms)

    def heredoc(self) -> str:
        mark = self.pick(("E", "EOF", "E2"))
        written = self.pick((mark, mark, f"'{mark}'", f'"{mark}"', f"\\{mark}", f" {mark}"))
        dash = self.pick(("", "", "-"))
        lines = [
            "text", f"$({self.inner()})", "h1", "'$(c2)'", '"', "'", "$x ${x}", "#", "$", "\\$(h2)",
            "`h3`", "E3", " E",
            "\\", "<<E", "\tE",
        ]  # fmt: skip
        inside = [
            self.pick(lines[: None if self.is_odd() else 9])
            for _ in range(self.random.randint(0, 2))
        ]
        tab = "\t" if dash and self.random.random() < 0.6 else ""
        self.bodies.append("".join(f"{tab}{line}\n" for line in inside) + f"{tab}{mark}\n")
        return f" <<{dash}{written}"

    # --- words

    def blank(self, least: int = 0) -> str:
        blanks = (" ", " ", " ", " ", " ", " ", " ", "\t", "  ", " \\\n")
        return self.pick(blanks if least or self.random.random() < 0.7 else ("",))

    def word(self) -> str:
        if self.random.random() < 0.45:
            return self.pick(_PLAIN)
        if self.random.random() < 0.03:
            return self.pick(_KEYWORDS.split())
        if not self.is_posix and self.random.random() < 0.03 and not self.bodies:
            return f"{self.pick('<>')}({self.inner()})"
        return "".join(self.part() for _ in range(self.random.choice((1, 1, 1, 1, 2, 3))))

    def inner(self) -> str:
        """Commands for a substitution: on one line, without heredocs of its own."""
        if self.depth > 3 or self.random.random() < 0.6:
            return self.pick(("c1", "c2 a", "c3 $x", "c4 >f1", "h8", ":"))
        bodies, self.bodies = self.bodies, []
        text = self.list()
        text += self.newline() if self.bodies else ""
        self.bodies = bodies
        return text if not bodies or "\n" not in text else "c2"

    def part(self) -> str:
        return self.one(
            lambda: self.pick(_PLAIN),
            lambda: f"'{self.pick(('', 'a b', 'a', '$(h1)', '#', '~', '*', *NASTY))}'",
            lambda: f'"{self.quoted()}{self.quoted()}"',
            lambda: "\\" + self.pick(" '\"\\$`()[]{}<>|&;#!~*?=abn"),
            lambda: self.pick(
                (
                    "$x",
                    "${x}",
                    "$1",
                    '"$@"',
                    "$@",
                    "$?",
                    "$$",
                    "$#",
                    "${x:-a}",
                    "${x%b}",
                    "${#x}",
                    "$*",
                )
            ),
            lambda: f"$({self.inner()})",
            self.backticks,
            lambda: self.pick(
                (
                    "*",
                    "?",
                    "[a-z]",
                    "i*",
                    "{a,b}",
                    "{1..3}",
                    "{}",
                    "~",
                    "~/a",
                    "a~",
                    "x=~/a",
                    "é",
                    "日本",
                )
            ),
            lambda: self.pick(("$((1+2))", "$((1<2))", "$(( 3 * 4 ))")),
            self.odd_part,
        )

    def odd_part(self) -> str:
        if not self.is_odd():
            return self.pick(_PLAIN)
        return self.pick(
            (
                "$'a\\'b'", '$"a"', "${x:=$(h1)}", "${x:-$(c1)}", '"${x:-"$(c2)"}"', "$((x))",
                "$[1]", "${x@P}", "${!x}",
                "$((a[$(h1)]))", "a\\\nb", "$(c1 # )\n)", "$(case x in x) c1;; esac)",
                "`c1 \\`c2\\``", '"`c1 "a"`"', "#a",
                "=a", "@(a|b)", "!(a)", "$((c1) )", "$( (c1) )", "$(<in)", "a$", '"$"', '"a\\\nb"',
                "\u00a0", "$x[1]", "{a,$(c1)}",
                "${x/$(c1)/b}", "${x:$(c1)}", "$-", "$!", "a=(b)", "x[$(c1)]", "[[", "((", "$_",
                "${x^^}", "${x:1}", "%1",
            )
        )  # fmt: skip

    def backticks(self) -> str:
        text = self.inner()
        return f"`{text}`" if "`" not in text and "\\" not in text else "`c1`"

    def quoted(self) -> str:
        return self.one(
            lambda: self.pick(
                (
                    "",
                    "a",
                    "a b",
                    "'",
                    "#",
                    "~",
                    "*",
                    "(",
                    ")",
                    ";",
                    "{a,b}",
                    "!",
                    "\\a",
                    "\\$",
                    "\\\\",
                    '\\"',
                )
            ),
            lambda: self.pick(("$x", "${x}", "$1", "$@", "${x:-a b}", "${#x}", "$", "$?", "\\`")),
            lambda: f"$({self.inner()})",
            lambda: "`c3 'a'`",
            lambda: self.pick(("a", "$((1+1))", "\n" if not self.bodies else " ")),
        )


# --- damage


def mutated(text: str, other: str, chance: random.Random) -> str:
    """The text with a few random changes, some of them taken from another text."""
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        text = chance.choice(_CHANGES)(text, other, chance)
    return text


def _insert(text: str, other: str, chance: random.Random) -> str:
    at = chance.randint(0, len(text))
    return (
        text[:at]
        + (chance.choice(_SPECIAL) if chance.random() < 0.5 else chance.choice(_PIECES))
        + text[at:]
    )


def _delete(text: str, other: str, chance: random.Random) -> str:
    at = chance.randint(0, len(text))
    return text[:at] + text[at + chance.choice((1, 1, 1, 2, 5)) :]


def _repeat(text: str, other: str, chance: random.Random) -> str:
    at = chance.randint(0, len(text))
    end = at + chance.choice((1, 1, 2, 6))
    return text[:end] + text[at:]


def _swap(text: str, other: str, chance: random.Random) -> str:
    at = chance.randint(0, len(text))
    return text[:at] + text[at + 1 : at + 2] + text[at : at + 1] + text[at + 2 :]


def _splice(text: str, other: str, chance: random.Random) -> str:
    at, start = chance.randint(0, len(text)), chance.randint(0, len(other))
    return text[:at] + other[start : start + chance.randint(1, 30)] + text[at:]


def _swap_words(text: str, other: str, chance: random.Random) -> str:
    words = text.split(" ")
    first, second = chance.randrange(len(words)), chance.randrange(len(words))
    words[first], words[second] = words[second], words[first]
    return " ".join(words)


def _break(text: str, other: str, chance: random.Random) -> str:
    """Put a backslash and a newline, or a newline, where there is a blank."""
    places = [at for at, char in enumerate(text) if char == " "] or [0]
    at = chance.choice(places)
    return text[:at] + chance.choice(("\\\n", " \\\n", "\n", "\t", "")) + text[at + 1 :]


_CHANGES = (_insert, _insert, _delete, _repeat, _swap, _splice, _swap_words, _break)


def script(seed: int, *, has_wrappers: bool = False, is_posix: bool = False) -> str:
    """The script of this seed: two in five are damaged."""
    text = Writer(seed, has_wrappers=has_wrappers, is_posix=is_posix).script()
    chance = random.Random(~seed)
    if chance.random() < 0.4:
        other = Writer(seed + 1, has_wrappers=has_wrappers, is_posix=is_posix).script()
        text = mutated(text, other, chance)
    return text.replace("\0", "")
