"""Arguments that do not fit: what would. Owns the words that say it, from a tool's own schema."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

Schema = Mapping[str, Any]

_WHERE = re.compile(r" - at `\$((?:\.\w+)+)`$")


def fitting(error: msgspec.ValidationError, schema: Schema) -> msgspec.ValidationError:
    """The same error, which also tells what there is to choose from."""
    words = str(error)
    where = _WHERE.search(words)
    path = where[1].split(".")[1:] if where else []
    found = list(_at(schema, path, schema.get("$defs", {})))
    if "unknown field" in words:
        names = [name for one in found for name in one.get("properties", ())]
        return msgspec.ValidationError(f"{words}; there is {', '.join(names)}")
    if "enum value" in words:
        choices = [repr(choice) for one in found for choice in one.get("enum", ())]
        return msgspec.ValidationError(f"{words}; it may be {', '.join(choices)}")
    return error


def _at(schema: Schema, path: list[str], defined: Schema) -> Iterator[Schema]:
    """What may be at this place."""
    if "$ref" in schema:
        schema = defined[schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        for one in schema["anyOf"]:
            yield from _at(one, path, defined)
    elif not path:
        yield schema
    elif path[0] in schema.get("properties", {}):
        yield from _at(schema["properties"][path[0]], path[1:], defined)
