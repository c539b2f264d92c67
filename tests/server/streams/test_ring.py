"""The ring: what is kept, for whom it is, and that it is joined once for all at one place."""

from __future__ import annotations

from bridle.server.streams.frames import Frame
from bridle.server.streams.ring import CHUNK_BYTES, Ring
from bridle.server.streams.wants import Want, kinds_of


def stored(seq: int, data: bytes = b"{}", kind: str = "x") -> Frame:
    return Frame(seq, kind, [(kind.encode(), data)], id=str(seq))


def live(after: int) -> Frame:
    return Frame(after, "live", [(b"live", b"{}")])


def ring_of(*frames: Frame, after: int = 0) -> Ring:
    ring = Ring(after)
    for frame in frames:
        ring.add(frame)
    return ring


def test_pieces_that_passed_before_one_came_are_not_for_them() -> None:
    ring = ring_of(stored(1), live(1), live(1))
    place = ring.place_after(1)
    assert ring.chunk(place, 1, Want()).data == b""
    ring.add(live(1))
    assert ring.chunk(place, 1, Want()).data.count(b"event: live") == 1


def test_pieces_older_than_what_was_read_from_the_log_are_not_told() -> None:
    """The log can be read before those who follow it are told."""
    ring = ring_of()
    place = ring.place_after(2)
    for frame in (live(0), stored(1), live(1), stored(2), live(2), stored(3)):
        ring.add(frame)
    data = ring.chunk(place, 2, Want()).data
    assert data == b"event: live\ndata: {}\n\nid: 3\nevent: x\ndata: {}\n\n"


def test_it_lets_go_of_the_first_and_says_from_where_it_has_all() -> None:
    ring = Ring(0, max_frames=8)
    for seq in range(1, 10):
        ring.add(stored(seq))
    assert (ring.floor, ring.last, ring.end - ring.start) == (3, 9, 6)
    assert ring.chunk(ring.place_after(3), 3, Want()).told == 9


def test_it_is_bounded_in_bytes() -> None:
    ring = Ring(0, max_bytes=10_000)
    for seq in range(1, 100):
        ring.add(stored(seq, b"x" * 1_000))
    assert ring.end - ring.start <= 8
    ring.add(stored(100, b"x" * 20_000))  # larger than all that it may hold
    assert (ring.floor, ring.end - ring.start) == (100, 0)


def test_a_chunk_is_bounded_and_says_where_to_go_on() -> None:
    ring = ring_of(*(stored(seq, b"x" * 50_000) for seq in range(1, 11)))
    seen, place, cursor = 0, ring.place_after(0), 0
    while chunk := ring.chunk(place, cursor, Want()):
        if not chunk.data:
            break
        assert len(chunk.data) < CHUNK_BYTES + 60_000
        seen, place, cursor = seen + chunk.count, chunk.place, chunk.cursor
    assert (seen, cursor) == (10, 10)


def test_all_who_want_the_same_at_one_place_get_the_same_bytes() -> None:
    ring = ring_of(*(stored(seq, b'"a"') for seq in range(1, 5)))
    hidden = Want(veil=bytes.upper)
    one, two = (ring.chunk(0, 0, hidden) for _ in range(2))
    assert one.data is two.data
    assert ring.chunk(0, 0, Want()).data != one.data


def test_a_frame_is_veiled_once_however_often_it_is_sent() -> None:
    calls = []

    def veil(data: bytes) -> bytes:
        calls.append(data)
        return b"***"

    frame = Frame(1, "entry", [(b"entry", b"1"), (b"entry", b"2")], id="1")
    assert frame.wire(veil) is frame.wire(veil)
    assert calls == [b"1", b"2"]
    assert frame.wire(veil) == b"event: entry\ndata: ***\n\nid: 1\nevent: entry\ndata: ***\n\n"
    assert frame.wire(None) == b"event: entry\ndata: 1\n\nid: 1\nevent: entry\ndata: 2\n\n"


def test_kinds_are_names_or_how_they_begin() -> None:
    kinds = kinds_of(" agent.said, approval.* ,,")
    wanted = {"agent.said": True, "approval.decided": True, "agent.asked": False, "approval": False}
    assert {kind: kinds.has(kind) for kind in wanted} == wanted
    assert kinds_of("").has("anything")
    assert kinds_of("*").has("anything")
