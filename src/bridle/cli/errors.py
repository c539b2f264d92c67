"""What goes wrong for the command, and with which code it then exits.

    CommandError               1
    ├── Misused                2   the words that it was given make no sense
    ├── NoServer               3   nothing answers, and the home alone does not do
    │   └── NoHome             3   there is not even a home
    ├── NotFound               4   no session, approval or policy goes by this name
    ├── NotNow                 5   it exists, but this can't be done with it now
    └── Refused                by its status: 404 is 4, 409 and the like are 5, others are 1

Each says what is wrong and what to do about it, on one line.
"""

from __future__ import annotations

import re
from pathlib import Path
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


class NoHome(NoServer):
    def __init__(self, home: Path) -> None:
        super().__init__(f"there is no home at {home}", "`bridle up` makes it")


class NotFound(CommandError):
    exit_code = NOT_FOUND


class NotNow(CommandError):
    exit_code = NOT_NOW


class Refused(CommandError):
    """The server's own word: problem details. `code` is for programs. What to do is told as
    somebody does it who has the command, and ids as far as one types them."""

    def __init__(
        self, status: int, code: str, words: str, remedy: str, about: dict[str, Any] | None = None
    ) -> None:
        super().__init__(_shortened(words), _REMEDIES.get(code, _shortened(remedy)))
        self.status = status
        self.code = code
        self.about = about or {}
        if status == 404:
            self.exit_code = NOT_FOUND
        elif status in _NOT_NOW:
            self.exit_code = NOT_NOW

    def called(self, name: str) -> Refused:
        """The same, with the name that somebody has typed in place of the id."""
        id_ = str(self.about.get("session") or "")[:SHORT]
        if not id_ or name.startswith(id_):
            return self
        words, remedy = (text.replace(id_, name) for text in (self.words, self.remedy))
        return Refused(self.status, self.code, words, remedy, self.about)


#: In place of remedies that speak of requests. Some words say already what to do.
_REMEDIES = {
    "already_decided": "see `bridle approvals --all`",
    "cli_refused": "see `bridle ps --all`",
    "invalid_decision": "`bridle approvals show ID` says what can be decided",
    "name_taken": "",
    "session_failed": "see `bridle ps --all`",
    "shown_otherwise": "see `bridle approvals show ID`, and decide again",
    "unauthorized": "set BRIDLE_TOKEN to one: `bridle token new` makes them, beside the server",
    "unknown_policy": "see `bridle policy list`",
    "unknown_rule": "see `bridle policy rules`",
}
#: So much of an id is told.
SHORT = 8
_ID = re.compile(r"\b([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_PAGE = re.compile(r"docs/[a-z]+\.md")


def _shortened(words: str) -> str:
    return _ID.sub(r"\1", words)


def _is_same_page(words: str, remedy: str) -> bool:
    """Whether both send to one page of the manual."""
    pages = _PAGE.findall(remedy)
    return bool(pages) and set(pages) <= set(_PAGE.findall(words))


def one_line(words: str, remedy: str = "") -> str:
    told = " ".join(words.split()).rstrip(".")
    what_to_do = " ".join(remedy.split()).rstrip(".")
    if not what_to_do or what_to_do.lower() in told.lower() or _is_same_page(told, what_to_do):
        return told
    # In the middle of a line, only a name begins with a large letter.
    is_word = what_to_do.split()[0][1:].islower()
    start = what_to_do[0].lower() if is_word else what_to_do[0]
    return f"{told}; {start}{what_to_do[1:]}"
