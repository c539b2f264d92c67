"""What an agent may let those below it do: rules, how often, for how long, and where.

Owns what can be written as such an entry; who may have it is for `delegation` to say.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec
from msgspec import Struct

from ..errors import InvalidPolicy, InvalidRule
from .paths import PathPattern
from .rules import Rule, parse_rule

#: What is more than this is no limit.
MOST = 10**9


class DelegableText(
    Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """An entry in words, as it is kept."""

    rules: tuple[str, ...]
    count: int | None = None
    seconds: float | None = None
    paths: tuple[str, ...] = ()


class Delegable(Struct, frozen=True, eq=False):
    """One entry: rules that an agent may grant. `count` is how many grants it has in its life,
    `seconds` for how long after its creation, `paths` where the session must work that gets it."""

    rules: tuple[Rule, ...]
    count: int | None = None
    seconds: float | None = None
    paths: tuple[str, ...] = ()

    @property
    def is_limited(self) -> bool:
        """Whether it comes to an end."""
        return self.count is not None or self.seconds is not None

    @property
    def text(self) -> DelegableText:
        """What it says, written in one way only."""
        return DelegableText(
            rules=tuple(sorted({rule.text for rule in self.rules})),
            count=self.count,
            seconds=None if self.seconds is None else float(self.seconds),
            paths=tuple(sorted(set(self.paths))),
        )

    @property
    def key(self) -> str:
        """Names it by what it says: what was granted by it is counted under this."""
        return hashlib.sha256(msgspec.json.encode(self.text)).hexdigest()[:16]


def delegable(
    rules: Iterable[str],
    *,
    count: int | None = None,
    seconds: float | None = None,
    paths: Iterable[str] = (),
    source: str = "policy",
) -> Delegable:
    """An entry from what somebody has written; InvalidPolicy or InvalidRule says what is wrong."""
    for name, given in (("rules", rules), ("paths", paths)):
        if isinstance(given, str):
            raise InvalidPolicy("policy", None, f"{name} is a list: give [{given!r}]")
    made = tuple(parse_rule(text, "allow", source) for text in rules)
    if not made:
        raise InvalidPolicy("policy", None, "an entry of delegate has rules; [] grants nothing")
    check_limit("count", count)
    check_limit("seconds", seconds)
    kept = tuple(paths)
    for path in kept:
        check_path(path)
    return Delegable(made, count, seconds, kept)


def check_limit(name: str, value: object) -> None:
    is_number = isinstance(value, int if name == "count" else int | float)
    is_fine = is_number and not isinstance(value, bool) and 0 < value <= MOST  # type: ignore[operator]
    if value is not None and not is_fine:
        what = "a whole number" if name == "count" else "a number"
        raise InvalidPolicy(
            "policy", None, f"{name} is {what} above 0 (and up to {MOST}), not {value!r}"
        )


def check_path(path: object) -> None:
    if not isinstance(path, str) or not path.strip():
        raise InvalidRule(repr(path), "a path is text, as in Edit(…): ./packages/**")
    PathPattern(path)
