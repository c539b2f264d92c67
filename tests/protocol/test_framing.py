from __future__ import annotations

import tracemalloc

import pytest

from bridle.protocol.framing import (
    DEFAULT_LIMIT,
    HEAD_SIZE,
    LineSplitter,
    Oversize,
    Unfinished,
)


def split(*pieces: bytes, limit: int = DEFAULT_LIMIT) -> list[bytes | Oversize]:
    splitter = LineSplitter(limit)
    lines = [line for piece in pieces for line in splitter.feed(piece)]
    return lines + splitter.finish()


def test_one_piece_with_several_lines_gives_them_in_order() -> None:
    assert split(b"a\nbb\nccc\n") == [b"a", b"bb", b"ccc"]


def test_a_line_comes_out_as_soon_as_its_end_has_arrived() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"first\nsec") == [b"first"]
    assert splitter.feed(b"") == []
    assert splitter.feed(b"ond") == []
    assert splitter.feed(b"\n") == [b"second"]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 100])
def test_pieces_of_any_size_give_the_same_lines(size: int) -> None:
    stream = b'{"a":1}\r\n\n{"b":"\xc3\xa9"}\n\r\nlast'
    pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
    assert split(*pieces) == [b'{"a":1}', b'{"b":"\xc3\xa9"}', b"last"]


def test_a_last_line_without_a_newline_is_a_line() -> None:
    assert split(b"a\n", b"la", b"st") == [b"a", b"last"]


def test_a_last_line_that_ends_in_cr_loses_it() -> None:
    assert split(b"last\r") == [b"last"]


def test_a_stream_that_ends_after_a_newline_has_no_last_line() -> None:
    assert split(b"a\n") == [b"a"]
    assert split() == []


def test_after_the_end_nothing_is_held() -> None:
    splitter = LineSplitter()
    splitter.feed(b"tail")
    assert splitter.finish() == [b"tail"]
    assert splitter.finish() == []
    assert splitter.unfinished == Unfinished()


@pytest.mark.parametrize(
    "pieces",
    [
        [b"a\r\nb\r\n"],
        [b"a\r", b"\nb\r", b"\n"],
        [b"a", b"\r", b"\n", b"b", b"\r", b"\n"],
        [b"a\r", b"", b"\nb\r\n"],
    ],
)
def test_the_cr_of_a_crlf_is_dropped_however_it_arrives(pieces: list[bytes]) -> None:
    assert split(*pieces) == [b"a", b"b"]


def test_a_cr_inside_a_line_stays() -> None:
    assert split(b"a\rb\n\r\rc\r\r\n") == [b"a\rb", b"\r\rc\r"]


def test_blank_lines_are_dropped() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"\n\na\n\r\n\n") == [b"a"]
    assert splitter.feed(b"\r") == []
    assert splitter.feed(b"\nb\n") == [b"b"]


def test_a_lone_cr_at_the_end_of_the_stream_is_a_blank_line() -> None:
    splitter = LineSplitter()
    splitter.feed(b"a\n\r")
    assert splitter.finish() == []


def test_nul_bytes_and_invalid_utf8_pass_through() -> None:
    assert split(b"\x00\n\xff\xfe\n", b"\xe2\x80", b"\n\x00\x00") == [
        b"\x00",
        b"\xff\xfe",
        b"\xe2\x80",
        b"\x00\x00",
    ]


def test_unicode_line_separators_do_not_end_a_line() -> None:
    separators = "a\u2028b\u2029c\x85d\x0be\x0c".encode()
    assert split(separators + b"\n") == [separators]


def test_the_limit_is_settable_and_a_line_of_exactly_that_size_passes() -> None:
    assert split(b"12345\n", limit=5) == [b"12345"]
    assert split(b"123", b"45", b"\n", limit=5) == [b"12345"]
    assert split(b"123456\n", limit=5) == [Oversize(6, b"123456")]


def test_a_limit_below_one_byte_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1 byte, not 0"):
        LineSplitter(0)


@pytest.mark.parametrize("size", [1, 7, 1023, 1024, 1025, 5000, 100_000])
def test_an_oversize_line_gives_its_length_and_first_kib_however_it_arrives(size: int) -> None:
    long = bytes(range(11, 211)) * 25
    stream = b"before\n" + long + b"\nafter\n"
    pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
    assert split(*pieces, limit=2000) == [b"before", Oversize(5000, long[:HEAD_SIZE]), b"after"]


@pytest.mark.parametrize("size", [1, 3, 64])
def test_a_limit_smaller_than_the_head_still_gives_length_and_head(size: int) -> None:
    stream = b"x" * 30 + b"\nok\n"
    pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
    assert split(*pieces, limit=10) == [Oversize(30, b"x" * 30), b"ok"]


def test_several_oversize_lines_in_one_piece_are_each_told() -> None:
    stream = b"a" * 20 + b"\nfine\n" + b"b" * 30 + b"\n" + b"c" * 40
    assert split(stream, limit=10) == [
        Oversize(20, b"a" * 20),
        b"fine",
        Oversize(30, b"b" * 30),
        Oversize(40, b"c" * 40),
    ]


def test_an_oversize_line_that_the_stream_ends_in_is_told_at_the_end() -> None:
    assert split(b"x" * 3000, b"x" * 3000, limit=2000) == [Oversize(6000, b"x" * HEAD_SIZE)]


def test_an_oversize_line_is_not_told_before_it_ends() -> None:
    splitter = LineSplitter(limit=10)
    assert splitter.feed(b"x" * 5000) == []
    assert splitter.feed(b"x" * 5000) == []
    assert splitter.feed(b"\nok\n") == [Oversize(10_000, b"x" * HEAD_SIZE), b"ok"]


def most_memory_while_streaming(splitter: LineSplitter, size: int, times: int) -> int:
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(times):
            assert splitter.feed(bytes(size)) == []
        _, peak = tracemalloc.get_traced_memory()
        return peak - before
    finally:
        tracemalloc.stop()


def test_while_a_huge_line_streams_in_at_most_the_limit_and_one_chunk_are_held() -> None:
    limit, size = 4_000_000, 64 * 1024
    splitter = LineSplitter(limit)
    peak = most_memory_while_streaming(splitter, size, times=640)
    assert splitter.feed(b"\nok\n") == [Oversize(640 * size, bytes(HEAD_SIZE)), b"ok"]
    # Beside the chunk that is held there is the one that the caller has just read.
    assert peak < limit + 2 * size


def test_a_line_that_comes_byte_by_byte_takes_no_more_memory_for_it() -> None:
    limit = 100_000
    splitter = LineSplitter(limit)
    assert most_memory_while_streaming(splitter, 1, times=limit) < 2 * limit
    assert splitter.feed(b"\n") == [bytes(limit)]


def test_once_over_the_limit_only_the_head_is_kept() -> None:
    limit, chunk = 100_000, b"x" * 10_000
    splitter = LineSplitter(limit)
    most = 0
    for _ in range(1000):
        splitter.feed(chunk)
        most = max(most, len(splitter.unfinished.held))
    assert most <= limit + len(chunk)
    assert splitter.unfinished == Unfinished(b"x" * HEAD_SIZE, 1000 * len(chunk) - HEAD_SIZE)


@pytest.mark.parametrize("at", range(0, 40, 3))
def test_another_splitter_can_go_on_from_what_is_unfinished(at: int) -> None:
    stream = b"short\r\n" + b"x" * 20 + b"\nlast\n"
    first = LineSplitter(limit=10)
    lines = first.feed(stream[:at])
    second = LineSplitter(limit=10, unfinished=first.unfinished)
    lines += second.feed(stream[at:])
    assert lines + second.finish() == [b"short", Oversize(20, b"x" * 20), b"last"]
