"""What can be read in an index of git, byte by byte: real ones are in test_repository.py."""

from __future__ import annotations

import struct

import pytest

from bridle.session.git_index import looks_into

FILE, SUBMODULE, FOLDER = 0o100644, 0o160000, 0o040000


def index(version: int, *entries: tuple[int, str], extended: bool = False) -> bytes:
    """As git writes one; in version 4 a path says how much of the one before it drops."""
    data, before = struct.pack(">4sII", b"DIRC", version, len(entries)), b""
    for mode, name in entries:
        path = name.encode()
        flags = struct.pack(">HH", 0x4000, 0) if extended else struct.pack(">H", 0)
        entry = bytes(24) + struct.pack(">I", mode) + bytes(12) + bytes(20) + flags
        if version == 4:
            shared = len([a for a, b in zip(path, before, strict=False) if a == b])
            shared = next((n for n in range(len(path)) if path[: n + 1] != before[: n + 1]), shared)
            data += entry + number(len(before) - shared) + path[shared:] + b"\0"
            before = path
        else:
            entry += path
            data += entry + bytes(8 - len(entry) % 8)
    return data + bytes(20)


def number(value: int) -> bytes:
    """As git writes how much is dropped."""
    found = [value & 0x7F]
    while value := value >> 7:
        value -= 1
        found.append(0x80 | (value & 0x7F))
    return bytes(reversed(found))


@pytest.mark.parametrize("version", [2, 3, 4])
def test_each_submodule_is_found_among_files_and_links(version: int) -> None:
    entries = [(FILE, "a"), (SUBMODULE, "a/sub"), (0o120000, "link"), (SUBMODULE, "z/é")]
    assert looks_into(index(version, *entries)) == (["a/sub", "z/é"], False)
    assert looks_into(index(version, *entries, (FOLDER, "zz/"))) == (["a/sub", "z/é"], True)


@pytest.mark.parametrize("version", [3, 4])
def test_entries_may_have_more_flags(version: int) -> None:
    data = index(version, (SUBMODULE, "sub"), (SUBMODULE, "sub2"), extended=True)
    assert looks_into(data) == (["sub", "sub2"], False)


def test_a_path_may_drop_much_of_the_one_before_it() -> None:
    entries = [(SUBMODULE, "a" * length) for length in (300, 2)] + [(SUBMODULE, "b" * 20_000)]
    entries.append((SUBMODULE, "c"))
    found, _ = looks_into(index(4, *entries))
    assert found == [path for _, path in entries]


@pytest.mark.parametrize("length", range(1, 12))
def test_paths_of_any_length_are_padded_to_the_next_entry(length: int) -> None:
    paths = ["a" * length, "b" * (length + 1), "c"]
    assert looks_into(index(2, *((SUBMODULE, path) for path in paths)))[0] == paths


def test_what_can_not_be_read_is_told() -> None:
    whole = index(2, (SUBMODULE, "a"), (SUBMODULE, "b"))
    for data in (
        whole[:-21],
        whole.replace(b"DIRC", b"CRID"),
        whole.replace(b"a\0", b"ax"),
        index(5, (SUBMODULE, "a")),
        index(2, (0o010000, "fifo"), (SUBMODULE, "a")),
    ):
        with pytest.raises(ValueError, match="the index can't be read"):
            looks_into(data)


def test_an_index_of_files_alone_is_not_looked_into_any_further() -> None:
    assert looks_into(index(2, (FILE, "a"))) == ([], False)
    assert looks_into(b"whatever") == ([], False)
