"""Random commands as an agent may write them, with all that a CLI may get wrong in them.

Owns the making of texts: pipelines of words that are quoted, globbed, escaped and redirected in
every way. The same seed makes the same command.
"""

from __future__ import annotations

import random

from tests.policy.shell.scripts import script

_WORDS = (
    *("a", "-n", "--x=y", "2", "a.b", "x/y", "5", "-", "--", "é", "a,b", "+1", "@a", "a:b", "%d"),
    *("'a b'", '"a b"', "'a;h1'", "'; h1; '", '"; h2; "', "'| h3'", '"&& h4"', "'a'b", "a'b c'd"),
    *("*", "*.py", "a*'; h5; '", "'*'", '"a*"b*', "?x", "[ab]*", "x[0-9]'; h6 #'", "**/*.c"),
    *("'#'", "a#b", "'a$'", '"^a|b$"', "'\\s+'", '"a\\"b"', "\\;", "a\\ b", "\\*", "'a\\'"),
    *("$x", '"$x"', "${x}", "'$(h7)'", "'`h8`'", "~", "~/a", "{a,b}", "'{a,b}'", "!", "'!a'", "=a"),
    *("'a\nb'", "'a\n'", "''", '""', "' '", "a'\n'h9", '"a\tb"', "'>f1'", "'2>f2'", "\\|", "'\\|'"),
    *("^a", "a^", "@(a)", "%", "'&'", "'<'", "'\\\\'", '"\\\\"', "\u00a0", "'a\u2028b'", "a=b"),
)
_BETWEEN = (
    " | ",
    "|",
    " |  ",
    " && ",
    " || ",
    "; ",
    " |& ",
    "\n",
    " & ",
    " |\n",
    " # a'b\n",
    " \\\n ",
)
_AFTER = (
    *("2>/dev/null", "2>&1", ">/dev/null", "> f1", ">f2", "2> f3", "</dev/null", "< in", "&>f4"),
    *(">&2", "1>&2", "2>>f5", ">| f6", "<<<a", "<<<'a b'", "3>f7"),
)


def command(seed: int) -> str:
    """One command: half of them are pipelines, the others whatever a shell may be given."""
    if seed % 2:
        return script(seed)
    return _pipeline(random.Random(seed))


def _pipeline(rand: random.Random) -> str:
    # Most of it plain, so that a careful reader takes it.
    oddity = rand.choice((0.05, 0.2, 0.5, 1.0))
    text = _simple(rand, oddity)
    for _ in range(rand.choice((1, 1, 1, 2, 3))):
        between = rand.choice(_BETWEEN) if rand.random() < oddity else " | "
        text += between + _simple(rand, oddity)
    if rand.random() < 0.05:
        at = rand.randrange(len(text))
        text = text[:at] + rand.choice("'\"\\ \n;|#*") + text[at:]
    return text


def _simple(rand: random.Random, oddity: float) -> str:
    words = [f"c{rand.randint(1, 9)}"]
    is_odd = max(oddity, 0.3)
    words += [
        rand.choice(_WORDS) if rand.random() < is_odd else rand.choice("abx")
        for _ in range(rand.choice((0, 1, 2, 2, 3)))
    ]
    if rand.random() < 0.2 * oddity + 0.05:
        words.append(rand.choice(_AFTER))
    return " ".join(words)
