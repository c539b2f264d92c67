"""What goes wrong for the command, and with which code it then exits.

    CommandError               1
    ├── Misused                2   the words that it was given make no sense
    ├── NoServer               3   nothing answers, and the home alone does not do
    ├── NotFound               4   no session, approval or policy goes by this name
    ├── NotNow                 5   it exists, but this can't be done with it now
    └── Refused                by its status: 404 is 4, 409 and the like are 5, others are 1

Each says what is wrong and what to do about it, on one line.
"""

from __future__ import annotations

from typing import Any

from ..errors import BridleError

OK, FAILED, MISUSED, NO_SERVER, NOT_FOUND, NOT_NOW, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130

#: What the server says where the thing itself, or its state, is in the way.
_NOT_NOW = frozenset({409, 410, 423, 425, 429, 503, 507})


class CommandError(BridleError):
    """Told as `bridle: WORDS; REMEDY`."""

    exit_code = FAILED

    def __init__(self, words: str, remedy: str = "") -> None:
        super().__init__(one_line(words, remedy))
        self.words = words
        self.remedy = remedy


class Misused(CommandError):
    exit_code = MISUSED


class NoServer(CommandError):
    exit_code = NO_SERVER

    def __init__(
        self, words: str = "no server is up", remedy: str = "start one with `bridle up`"
    ) -> None:
        super().__init__(words, remedy)


class NotFound(CommandError):
    exit_code = NOT_FOUND


class NotNow(CommandError):
    exit_code = NOT_NOW


class Refused(CommandError):
    """The server's own word: problem details. `code` is for programs."""

    def __init__(
        self, status: int, code: str, words: str, remedy: str, about: dict[str, Any] | None = None
    ) -> None:
        super().__init__(words, remedy)
        self.status = status
        self.code = code
        self.about = about or {}
        if status == 404:
            self.exit_code = NOT_FOUND
        elif status in _NOT_NOW:
            self.exit_code = NOT_NOW


def one_line(words: str, remedy: str = "") -> str:
    told = " ".join(words.split()).rstrip(".")
    what_to_do = " ".join(remedy.split()).rstrip(".")
    if not what_to_do or what_to_do.lower() in told.lower():
        return told
    # In the middle of a line, only a name begins with a large letter.
    is_word = what_to_do.split()[0][1:].islower()
    start = what_to_do[0].lower() if is_word else what_to_do[0]
    return f"{told}; {start}{what_to_do[1:]}"
