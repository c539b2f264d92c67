"""Those who are slow on purpose, or bring too much, are not waited for."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator

import httpx
import msgspec
import pytest

from bridle.server.bodies import BodyLimits
from bridle.server.problems import ProblemDetails
from bridle.server.protocol import ConnectionLimits
from tests.supervisor.homes import LIMIT, Home

from .served import Served, served

SOON = 0.2
ME = "/api/v1/me"
TOKENS = "/api/v1/tokens"


@pytest.fixture
async def server(home: Home) -> AsyncIterator[Served]:
    limits = ConnectionLimits(header_seconds=SOON, unread_seconds=SOON, most=8)
    bodies = BodyLimits(most=1000, large=5000, seconds=SOON)
    async with served(home.folder, limits=limits, bodies=bodies) as server:
        yield server


def head(server: Served, line: str, *headers: str) -> bytes:
    told = [f"Host: 127.0.0.1:{server.port}", f"Authorization: Bearer {server.token}", *headers]
    return "\r\n".join([line, *told, "", ""]).encode()


async def rest(reader: asyncio.StreamReader) -> bytes:
    """All that comes until the connection ends, also where it is cut off."""
    data = b""
    async with asyncio.timeout(LIMIT):
        try:
            while piece := await reader.read(65536):
                data += piece
        except ConnectionError:
            pass
    return data


def problem(answer: bytes) -> ProblemDetails:
    return msgspec.json.decode(answer.partition(b"\r\n\r\n")[2], type=ProblemDetails)


async def is_cut_off(reader: asyncio.StreamReader) -> bool:
    """Without a word, and not before its time."""
    start = time.monotonic()
    return await rest(reader) == b"" and time.monotonic() - start > SOON / 2


# --- headers


@pytest.mark.parametrize("said", [b"", b"G", b"GET /api/v1/me HTTP/1.1\r\nHost: x\r\nA: "])
async def test_headers_that_never_end_are_not_waited_for(server: Served, said: bytes) -> None:
    reader, writer = await server.raw()
    writer.write(said)
    assert await is_cut_off(reader)
    writer.close()


async def test_headers_that_trickle_are_not_waited_for_either(server: Served) -> None:
    reader, writer = await server.raw()

    async def trickle() -> None:
        while True:
            writer.write(b"A")
            await asyncio.sleep(SOON / 10)

    trickling = asyncio.ensure_future(trickle())
    try:
        assert await is_cut_off(reader)
    finally:
        trickling.cancel()
        writer.close()


async def test_nor_those_of_a_later_request(server: Served) -> None:
    reader, writer = await server.raw()
    writer.write(head(server, f"GET {ME} HTTP/1.1"))
    assert (await reader.readuntil(b"}")).startswith(b"HTTP/1.1 200")
    writer.write(b"GET /again HTTP/1.1\r\nA:")
    assert await is_cut_off(reader)
    writer.close()


async def test_nor_those_that_came_together_with_an_earlier_one(server: Served) -> None:
    reader, writer = await server.raw()
    writer.write(head(server, f"GET {ME} HTTP/1.1") + b"GET /again HTTP/1.1\r\nA:")
    assert (await reader.readuntil(b"}")).startswith(b"HTTP/1.1 200")
    assert await is_cut_off(reader)
    writer.close()


@pytest.mark.slow
async def test_between_two_requests_there_is_more_time(server: Served) -> None:
    reader, writer = await server.raw()
    for _ in range(3):
        writer.write(head(server, f"GET {ME} HTTP/1.1"))
        assert (await reader.readuntil(b"}")).startswith(b"HTTP/1.1 200")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(1), SOON * 2)
    writer.close()


NO_REQUEST = [
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"GET /\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
    b"\r\n" * 100,
]


async def test_what_is_no_request_is_answered_with_a_problem(server: Served) -> None:
    for said in NO_REQUEST:
        reader, writer = await server.raw()
        writer.write(said)
        answer = await rest(reader)
        writer.close()
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert problem(answer).code == "bad_request"


# --- bodies


def body(size: int) -> bytes:
    return b'{"role": "reader", "name": "' + b"x" * (size - 30) + b'"}'


async def posted(server: Served, path: str, content: bytes, *, chunked: bool) -> httpx.Response:
    async def pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(content), 512):
            yield content[at : at + 512]

    async with server.client(server.token) as client:
        sent = pieces() if chunked else content
        headers = {"content-type": "application/json"}
        return await client.post(path, content=sent, headers=headers)


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_that_is_too_large_is_refused(server: Served, chunked: bool) -> None:
    answer = await posted(server, TOKENS, body(1001), chunked=chunked)
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert answer.json()["about"] == {"most": 1000}
    fits = await posted(server, TOKENS, body(1000), chunked=chunked)
    assert fits.json()["code"] == "invalid_name"


#: What takes prompts, or files that an agent is to write; and what is wrong with one that fits.
PROMPTED = {
    "/sessions": "invalid_body",
    "/sessions/nobody/send": "unknown_session",
    "/sessions/nobody/start": "unknown_session",
    "/sessions/nobody/resume": "unknown_session",
    "/sessions/nobody/fork": "unknown_session",
    "/approvals/nobody/decide": "unknown_field",
}


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_prompt_may_be_larger(server: Served, chunked: bool) -> None:
    for path, small in PROMPTED.items():
        for size, code in ((5000, small), (5001, "too_large")):
            prompt = b'{"prompt": "' + b"x" * (size - 14) + b'"}'
            assert len(prompt) == size
            answer = await posted(server, f"/api/v1{path}", prompt, chunked=chunked)
            assert answer.json()["code"] == code, path


@pytest.mark.parametrize("chunked", [False, True])
async def test_one_who_may_not_call_is_told_that_and_not_how_much(
    server: Served, chunked: bool
) -> None:
    async with server.client() as client:
        answer = await client.post(TOKENS, content=body(2000))
    assert answer.status_code == 401


async def test_what_is_said_of_a_length_is_believed_at_once(server: Served) -> None:
    reader, writer = await server.raw()
    words = ("Content-Type: application/json", "Content-Length: 99999999999")
    writer.write(head(server, f"POST {TOKENS} HTTP/1.1", *words, "Expect: 100-continue"))
    answer = await rest(reader)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert problem(answer).code == "too_large"
    writer.close()


async def test_a_body_that_does_not_come_is_not_waited_for(server: Served) -> None:
    reader, writer = await server.raw()
    words = ("Content-Type: application/json", "Content-Length: 100")
    writer.write(head(server, f"POST {TOKENS} HTTP/1.1", *words) + b"{")
    answer = await rest(reader)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert problem(answer).code == "too_slow"
    writer.close()


@pytest.mark.slow
async def test_nor_one_that_trickles_or_that_nobody_wants(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridle.server.protocol.LINGER_SECONDS", SOON)
    for line in (f"POST {TOKENS} HTTP/1.1", f"GET {ME} HTTP/1.1", "GET /nothing HTTP/1.1"):
        reader, writer = await server.raw()
        words = ("Content-Type: application/json", "Transfer-Encoding: chunked")
        writer.write(head(server, line, *words))

        async def trickle(writer: asyncio.StreamWriter) -> None:
            while True:
                writer.write(b"1\r\n \r\n")
                await asyncio.sleep(SOON / 10)

        trickling = asyncio.ensure_future(trickle(writer))
        assert await rest(reader)
        trickling.cancel()
        writer.close()


# --- answers


@pytest.mark.slow
async def test_answers_that_nobody_reads_hold_no_connection_for_ever(server: Served) -> None:
    asked = head(server, "GET /api/v1/openapi.json HTTP/1.1")  # a long answer
    loop = asyncio.get_running_loop()
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(socket.socket()) for _ in range(8)]
        for client in clients:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
            client.setblocking(False)
            await loop.sock_connect(client, ("127.0.0.1", server.port))
        asking = [asyncio.ensure_future(ask_on(client, asked * 100)) for client in clients]
        async with asyncio.timeout(LIMIT):
            await asyncio.gather(*asking)
            while not await is_let_in(server):
                pass  # they are there still


async def ask_on(client: socket.socket, asked: bytes) -> None:
    """Without ever reading, until one is cut off."""
    with contextlib.suppress(ConnectionError):
        while True:
            await asyncio.get_running_loop().sock_sendall(client, asked)


# --- connections


@pytest.fixture
async def patient(home: Home) -> AsyncIterator[Served]:
    """Has few places, and waits for headers as long as a slow machine needs."""
    async with served(home.folder, limits=ConnectionLimits(most=8)) as server:
        yield server


async def test_there_are_never_more_connections_than_may_be(patient: Served) -> None:
    others = [await patient.raw() for _ in range(8)]
    for reader, writer in others:
        writer.write(head(patient, f"GET {ME} HTTP/1.1"))
        assert (await reader.readuntil(b"}")).startswith(b"HTTP/1.1 200")
    reader, writer = await patient.raw()
    answer = await rest(reader)
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert problem(answer).code == "too_many_connections"
    writer.close()
    # The socket in the home has places of its own: nobody can be locked out of it from outside.
    async with patient.local() as client:
        assert (await client.get(ME)).status_code == 200
    for _, writer in others:
        writer.close()
        await writer.wait_closed()
    async with asyncio.timeout(LIMIT):
        while not await is_let_in(patient):
            pass  # it has not noticed yet that they went


async def is_let_in(server: Served) -> bool:
    async with server.client(server.token) as client:
        return (await client.get(ME)).status_code == 200
