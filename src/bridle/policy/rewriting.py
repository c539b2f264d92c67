"""Commands that old CLIs rewrite before their shell gets them. Pure.

Up to 2.1.85, Claude Code takes a command with a pipe apart and puts it together again: globs lose
the quotes beside them, newlines and comments are dropped. And where a command has both `'` and `!`,
a backslash is put before the `!`. Owns which commands survive that as they are; the conformance
suite compares what was judged with what the CLIs' shells are given.
"""

from __future__ import annotations

import re

_BARE = r"[A-Za-z0-9_./:@%+,=^-]"
_QUOTED = r"""'[^'"\\$`!~\x00-\x1f\x7f]*'|"[^'"\\$`!~\x00-\x1f\x7f]*\""""
#: A word is either a glob or has quotes: of one with both, the quotes are lost.
_WORD = rf"(?>(?:{_BARE}|{_QUOTED})++(?![*?])|(?:{_BARE}|[*?])++)"
#: What a digit before a redirection means is not kept, but for these.
_REDIRECTION = r"2>(?:&1|[ ]?/dev/null)"
_OPERATOR = r"\|\||&&|[|;]"
_COMMAND = rf"{_WORD}(?: ++(?!2>){_WORD})*+(?:(?<![ ][0-2]) ++{_REDIRECTION})*+"
_SURVIVES = re.compile(rf" *+{_COMMAND}(?: *+(?:{_OPERATOR}) *+{_COMMAND})*+ *+")

REWRITTEN = (
    "this version of Claude Code changes such commands before it runs them, so that what runs may "
    "differ from what is shown"
)


def survives_rewriting(command: str) -> bool:
    """Whether it stays what it is."""
    if "|" in command:
        return _SURVIVES.fullmatch(command) is not None
    return "!" not in command or "'" not in command
