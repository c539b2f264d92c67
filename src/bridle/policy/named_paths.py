"""Paths in the texts that a tool is given of which nothing is known. Pure.

Any text may be a path: as it is, as the URL of a file, or as an entry of a list. What a tool may
take for another path, such as one with blanks at its ends, is told in both forms.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator

#: A longer text is no path; one of this length may still be one with many `.` in it.
MAX_PATH = 65_536
MAX_PARTS = 50

_FILE_URL = re.compile(r"\s*(?:view-source:)?[\w-]*file:(?://[^/\\]*(?=[/\\]))?", re.IGNORECASE)
_ENCODED = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_BEHIND = re.compile(r"[?#].*", re.DOTALL)
_BETWEEN = re.compile(r"""[,;|"'\[\]\s=:@<]+""")
#: What JavaScript's trim() drops, as versions of the CLI do at the ends of a path.
_BLANKS = " \t\n\v\f\r\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_ENDS = re.compile(rf"\A[{_BLANKS}]+|[{_BLANKS}]+\Z")
_RARE = re.compile(r"[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
#: At the beginning of a path some tools put these in.
_VARIABLE = re.compile(r"\A\$\{?(HOME|PWD)\}?(?=/|\Z)")
_MEANS = {"HOME": "~", "PWD": "."}
_CONTROLS = re.compile(r"[\x00-\x1f\x7f]")


def paths_in(texts: Iterable[str]) -> list[str]:
    """All that may be a path in these."""
    found: dict[str, None] = {}
    for text in texts:
        if 0 < len(text) <= MAX_PATH:
            found |= dict.fromkeys(_forms(text))
    return [path for path in found if path and "\0" not in path]


def usual_path(path: str) -> str:
    """As another program may take it: without blanks at its ends, with usual ones inside."""
    return _RARE.sub(" ", _ENDS.sub("", unicodedata.normalize("NFC", path)))


def unquoted(url: str) -> str:
    """Without percent encoding."""
    return _ENCODED.sub(lambda found: _decoded(found.group()), url)


def _decoded(encoded: str) -> str:
    return bytes.fromhex(encoded.replace("%", "")).decode(errors="replace")


def _forms(text: str) -> Iterator[str]:
    forms = [text, _of_url(text)]
    forms += [form.replace("\\", "/") for form in forms if "\\" in form]
    forms += [unquoted(form) for form in forms if "%" in form]
    forms += [_VARIABLE.sub(lambda found: _MEANS[found[1]], form) for form in forms if "$" in form]
    for form in dict.fromkeys(forms):
        yield form
        if not form.isascii() or _CONTROLS.search(form) or form != form.strip():
            yield usual_path(_CONTROLS.sub("", form))
            yield usual_path(form)
    parts = _BETWEEN.split(text, maxsplit=MAX_PARTS)
    if len(parts) > 1:
        yield from (_of_url(part) for part in parts)


def _of_url(text: str) -> str:
    """The path of a file's URL; any other text is left as it is."""
    found = _FILE_URL.match(text)
    return unquoted(_BEHIND.sub("", text[found.end() :])) if found else text
