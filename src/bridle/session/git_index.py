"""The index of a git repository, as far as it says where git looks besides: in submodules.

Owns the file's format (versions 2 to 4, SHA-1 and SHA-256); knows nothing of settings.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

#: A mode of a submodule or of a folder may be in it.
_MAY_LOOK = re.compile(rb"\x00\x00[\x40-\x4f\xe0-\xef]")
_HEAD = struct.Struct(">4sII")
_MODE_AT, _HASH_AT = 24, 40
_FILES, _LINK, _SUBMODULE, _FOLDER = 0x8, 0xA, 0xE, 0x4
_EXTENDED, _HAS_MORE = 0x4000, 0x80


def looks_into(data: bytes) -> tuple[list[str], bool]:
    """The submodules in an index, and whether it leaves out what is in some folders. ValueError if
    it is no index."""
    if not _MAY_LOOK.search(data):
        return [], False
    for size in (20, 32):
        try:
            found = list(_entries(data, size))
        except (IndexError, ValueError, struct.error):
            continue
        kinds = {mode >> 12 & 0xF for mode, _ in found}
        if kinds <= {_FILES, _LINK, _SUBMODULE, _FOLDER}:
            links = [path for mode, path in found if mode >> 12 & 0xF == _SUBMODULE]
            return [path.decode("utf-8", "surrogateescape") for path in links], _FOLDER in kinds
    raise ValueError("the index can't be read")


def _entries(data: bytes, hash_size: int) -> Iterator[tuple[int, bytes]]:
    """The mode and the path of each entry."""
    signature, version, count = _HEAD.unpack_from(data)
    if signature != b"DIRC" or version not in (2, 3, 4):
        raise ValueError("no index")
    at, path = _HEAD.size, b""
    for _ in range(count):
        [mode] = struct.unpack_from(">I", data, at + _MODE_AT)
        flags_at = at + _HASH_AT + hash_size
        [flags] = struct.unpack_from(">H", data, flags_at)
        begin = flags_at + (4 if flags & _EXTENDED and version > 2 else 2)
        if version == 4:
            dropped, begin = _number(data, begin)
            end = data.index(b"\0", begin)
            path = path[: len(path) - dropped] + data[begin:end]
            at, after = end + 1, end + 1
        else:
            end = data.index(b"\0", begin)
            path = data[begin:end]
            # Padded with one to eight zeros.
            after = at + (end - at + 8) // 8 * 8
        if data[end:after].strip(b"\0") or after > len(data) - hash_size:
            raise ValueError("an odd end of an entry")
        yield mode, path
        at = after


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number in as many bytes as it needs, and where it ends."""
    byte, at = data[at], at + 1
    number = byte & 0x7F
    while byte & _HAS_MORE:
        byte, at = data[at], at + 1
        number = ((number + 1) << 7) | (byte & 0x7F)
    return number, at
