"""What two servers could read in two ways, or has no end, is refused before anybody looks at it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator

import h11
import msgspec
import pytest

from bridle.server.problems import ProblemDetails
from bridle.server.requests import MAX_HEAD, MAX_HEADERS, StrictConnection
from tests.operations import grows_as_its_size
from tests.supervisor.homes import LIMIT, Home

from .served import Served, served

TOKENS = "/api/v1/tokens"
BODY = b'{"role": "reader", "name": "x"}'
CHUNKED = b"Transfer-Encoding: chunked\r\n"
LENGTH = b"Content-Length: %d\r\n" % len(BODY)


@pytest.fixture
async def server(home: Home) -> AsyncIterator[Served]:
    async with served(home.folder) as server:
        yield server


def post(server: Served, headers: bytes, body: bytes = BODY) -> bytes:
    head = f"POST {TOKENS} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
    head += f"Authorization: Bearer {server.token}\r\nContent-Type: application/json\r\n"
    return head.encode() + headers + b"Connection: close\r\n\r\n" + body


async def told(server: Served, sent: bytes) -> tuple[int, str]:
    """The status of the only answer, and the code of its problem."""
    reader, writer = await server.raw()
    writer.write(sent)
    async with asyncio.timeout(LIMIT):
        data = await reader.read()
    writer.close()
    head, _, body = data.partition(b"\r\n\r\n")
    assert len(re.findall(rb"HTTP/1.1 \d", data)) == 1
    status = int(head.split()[1])
    return status, msgspec.json.decode(body, type=ProblemDetails).code if status >= 400 else ""


def chunk(data: bytes, extension: bytes = b"") -> bytes:
    return b"%x%s\r\n%s\r\n" % (len(data), extension, data)


async def test_what_is_as_it_should_be_is_let_in(server: Served) -> None:
    pieces = chunk(BODY[:3]) + chunk(BODY[3:])
    for sent in (
        post(server, LENGTH),
        post(server, CHUNKED, pieces + b"0\r\n\r\n"),
        post(server, CHUNKED, pieces + b"0\r\nA: trailer\r\n\r\n"),
        post(server, LENGTH + b"A: b\r\n" * (MAX_HEADERS - 6)),
        post(server, LENGTH + b"A: " + b"b" * (MAX_HEAD - 1000) + b"\r\n"),
    ):
        status, code = await told(server, sent)
        assert (status, code) == (201, "")


async def test_headers_that_are_too_large_or_too_many_are_refused(server: Served) -> None:
    for headers in (
        b"A: " + b"b" * 70_000 + b"\r\n",
        b"A: " + b"b" * MAX_HEAD + b"\r\n",
        b"A: b\r\n" * (MAX_HEADERS + 1),
        b"A" * 70_000,  # no end at all
        b"A: b\r\n" * 20_000,
    ):
        assert await told(server, post(server, LENGTH + headers)) == (431, "headers_too_large")


async def test_what_has_two_lengths_is_refused(server: Served) -> None:
    chunks = chunk(BODY) + b"0\r\n\r\n"
    for headers, body in (
        (LENGTH + CHUNKED, chunks),
        (CHUNKED + LENGTH, chunks),
        (LENGTH + LENGTH, BODY),
        (LENGTH + LENGTH.lower(), BODY),
        (b"Content-Length: 31, 31\r\n", BODY),
        (LENGTH + b"Content-Length: 3\r\n", BODY),
        (CHUNKED + CHUNKED, chunks),
        (b"Transfer-Encoding: chunked, chunked\r\n", chunks),
        (b"Transfer-Encoding: identity\r\n", BODY),
        (b"Transfer-Encoding: gzip, chunked\r\n", chunks),
        (LENGTH + b"Transfer-Encoding : chunked\r\n", chunks),
        (LENGTH + b"\x0bTransfer-Encoding: chunked\r\n", chunks),
        (LENGTH + b"A: b\r\n Transfer-Encoding: chunked\r\n", chunks),
        (b"Content-Length: +31\r\n", BODY),
        (b"Content-Length: 0x1f\r\n", BODY),
    ):
        assert await told(server, post(server, headers, body)) == (400, "bad_request"), headers
    old = post(server, CHUNKED, chunks).replace(b"HTTP/1.1", b"HTTP/1.0")
    assert await told(server, old) == (400, "bad_request")


async def test_a_header_that_counts_once_is_there_once(server: Served) -> None:
    host = f"Host: 127.0.0.1:{server.port}\r\n".encode()
    for header in (
        *(host, b"Host: evil\r\n", b"Authorization: Bearer x\r\n"),
        b"Content-Type: text/plain\r\n",
    ):
        assert await told(server, post(server, LENGTH + header)) == (400, "bad_request"), header
    for header in (b"Origin: http://a\r\n", b"Last-Event-ID: 1\r\n"):
        assert await told(server, post(server, LENGTH + header * 2)) == (400, "bad_request")


async def test_lines_that_others_would_read_differently_are_refused(server: Served) -> None:
    for headers in (
        b"A: b\r\n c\r\n",
        b"A: b\r\n\tc\r\n",
        b"A: b\nC: d\r\n",
        b"A: b\rC: d\r\n",
        b"A: b\x00c\r\n",
        b"A: b\x01c\r\n",
        b"A: b\n\r\n",
    ):
        sent = post(server, LENGTH + headers)
        assert await told(server, sent) == (400, "bad_request"), headers
    lines = post(server, LENGTH).replace(b"\r\n", b"\n")
    assert await told(server, lines) == (400, "bad_request")
    for line in (b"POST http://evil/ HTTP/1.1", b"POST * HTTP/1.1", b"POST / HTTP/1.9"):
        sent = line + post(server, LENGTH).partition(b" HTTP/1.1")[2]
        assert await told(server, sent) == (400, "bad_request"), line


async def test_chunks_have_no_extensions_and_few_trailers(server: Served) -> None:
    for body in (
        chunk(BODY, b";" + b"a" * 1000) + b"0\r\n\r\n",
        chunk(BODY[:1]) + chunk(BODY[1:], b";a=" + b"b" * 60_000) + b"0\r\n\r\n",
        chunk(BODY, b";" + b"a" * 100_000),  # no end at all
        chunk(BODY) + b"0\r\n" + b"A: b\r\n" * 20_000 + b"\r\n",
        b"-1\r\n",
    ):
        assert await told(server, post(server, CHUNKED, body)) == (400, "bad_request"), body[:50]


async def test_what_follows_a_refused_request_is_not_read(server: Served) -> None:
    follows = post(server, LENGTH)
    smuggled = post(server, LENGTH + CHUNKED, b"0\r\n\r\n" + follows)
    assert await told(server, smuggled) == (400, "bad_request")
    async with server.client(server.token) as client:
        tokens = (await client.get(TOKENS)).json()
    assert [one for one in tokens if one["name"] == "x"] == []


# --- in pieces


HEAD = b"GET / HTTP/1.1\r\nHost: x\r\n"


def refusal(pieces: list[bytes]) -> str:
    """Why it is refused, however it comes; "" if it is let in."""
    connection = StrictConnection()
    for piece in pieces:
        connection.receive_data(piece)
        try:
            event = connection.next_event()
        except h11.RemoteProtocolError as error:
            return connection.refusal.detail if connection.refusal else str(error)
        if isinstance(event, h11.Request):
            return ""
    return "it has no end"


def test_headers_that_come_letter_by_letter_are_read_as_if_they_came_at_once() -> None:
    for headers in (
        b"A: b\r\n\r\n",
        b"A: b\n\r\n",
        b"A: b\rc\r\n\r\n",
        b"A: b\r\r\n\r\n",
        b"A: b\r\n c\r\n\r\n",
        b"A: \x00\r\n\r\n",
        b"Host: y\r\n\r\n",
        b"A: b\r\n" * (MAX_HEADERS - 1) + b"\r\n",
        b"A: b\r\n" * (MAX_HEADERS + 2) + b"\r\n",
    ):
        sent = HEAD + headers
        whole = refusal([sent])
        assert refusal([bytes([letter]) for letter in sent]) == whole
        for at in range(len(HEAD), min(len(sent), 200)):
            assert refusal([sent[:at], sent[at:]]) == whole


def test_the_next_request_of_a_connection_is_read_from_its_beginning() -> None:
    connection = StrictConnection()
    for _ in range(3):
        connection.receive_data(HEAD + b"A: b\r\n" * (MAX_HEADERS - 1))
        assert connection.next_event() is h11.NEED_DATA
        connection.receive_data(b"\r\n")
        assert isinstance(connection.next_event(), h11.Request)
        assert isinstance(connection.next_event(), h11.EndOfMessage)
        connection.send(h11.Response(status_code=200, headers=[(b"content-length", b"0")]))
        connection.send(h11.EndOfMessage())
        connection.start_next_cycle()


def letter_by_letter(length: int) -> None:
    connection = StrictConnection()
    connection.receive_data(HEAD + b"A: ")
    for _ in range(length):
        connection.receive_data(b"b")
        assert connection.next_event() is h11.NEED_DATA


def test_headers_that_come_letter_by_letter_take_as_long_as_they_are_long() -> None:
    assert grows_as_its_size(letter_by_letter, 3_000, 30_000)
