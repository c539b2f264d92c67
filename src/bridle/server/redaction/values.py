"""Values that are known to be secrets: of the environment, and of sessions.

Owns how each may be written. Which can be told from ordinary words is the supervisor's to say.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from typing import TypeAlias
from urllib.parse import quote

from ...supervisor.environment import (
    SHORTEST_VALUE,
    is_inherited_secret,
    is_told_secret,
    spellings,
)

#: Variables, each with its name and its value.
Held: TypeAlias = frozenset[tuple[str, str]]
#: How it is spelled in JSON, and with that the value that is looked for in a text, and its kind.
Values: TypeAlias = dict[bytes, tuple[bytes, str]]


def values_of(environ: Mapping[str, str], held: Held) -> Values:
    ours = [one for one in environ.items() if is_inherited_secret(*one)]
    return _by_spelling(one for one in held if is_told_secret(*one)) | _by_spelling(ours)


def _by_spelling(variables: Iterable[tuple[str, str]]) -> Values:
    found: Values = {}
    for name, value in variables:
        kind = name if re.fullmatch(r"\w{1,80}", name, re.ASCII) else "environment"
        for text in _forms(value):
            raw = text.encode("utf-8", "surrogatepass")
            found |= dict.fromkeys(spellings(text), (raw, kind))
    return found


def _forms(value: str) -> list[str]:
    """As it is, as an address has it, and in base64."""
    raw = value.encode("utf-8", "surrogatepass")
    encoded = base64.b64encode(raw).decode().rstrip("=")
    forms = [value, value.strip(), quote(raw, safe="")]
    # The last letters depend on what follows.
    forms += [encoded[: len(raw) // 3 * 4]] if len(raw) >= SHORTEST_VALUE else []
    return list(dict.fromkeys(forms))
