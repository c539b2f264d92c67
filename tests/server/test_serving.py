"""From the first socket to the last request, and who is in the way."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import stat
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from bridle.errors import HomeInUse
from bridle.home.address import read_address
from bridle.server import sockets
from bridle.server.errors import AddressInUse, AddressRefused
from bridle.server.serving import ServeSettings, serve
from tests.supervisor.homes import LIMIT, WORKS, Home, asked, until

from .served import Served, served

ME = "/api/v1/me"
PROGRAM = str(Path(__file__).with_name("serving_program.py"))


@contextlib.asynccontextmanager
async def process(
    home: Home, port: int = 0
) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """A server in a process of its own, and its socket."""
    words = [sys.executable, PROGRAM, str(home.folder), str(port)]
    server = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
    assert server.stdout
    try:
        async with asyncio.timeout(LIMIT):
            line = (await server.stdout.readline()).decode()
        assert line, "it did not start"
        yield server, line.split()[1]
    finally:
        if server.returncode is None:
            server.kill()
        await server.wait()


async def me(path: str) -> httpx.Response:
    transport = httpx.AsyncHTTPTransport(uds=path, verify=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        return await client.get(ME)


def files(home: Path) -> list[str]:
    return [name for name in ("bridle.sock", "server.json") if (home / name).exists()]


# --- what is in the way


async def test_small_answers_are_sent_at_once() -> None:
    """Else the second of two waits 40 ms for the other side to confirm the first."""
    sent_at_once: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def called(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = writer.get_extra_info("socket")
        sent_at_once.set_result(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    with sockets.bound_tcp("127.0.0.1", 0) as listener:
        async with await asyncio.start_server(called, sock=listener):
            _, writer = await asyncio.open_connection(*listener.getsockname())
            assert await asyncio.wait_for(sent_at_once, LIMIT)
            writer.close()


async def test_a_port_in_use_is_told_and_nothing_is_touched(home: Home) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(AddressInUse, match=f"port {port} of 127.0.0.1 is in use.*--port"):
            await serve(ServeSettings(home=home.folder, port=port), signals=())
    assert not home.folder.exists()


async def test_a_second_server_of_a_home_is_refused_and_the_first_goes_on(home: Home) -> None:
    async with served(home.folder) as first:
        address = read_address(home.folder)
        with pytest.raises(HomeInUse, match=f"in use by process {os.getpid()}"):
            await serve(ServeSettings(home=home.folder, port=0), signals=())
        assert (await me(first.ready.socket)).status_code == 200
        assert read_address(home.folder) == address


@pytest.mark.slow
async def test_what_a_killed_server_left_is_replaced(home: Home) -> None:
    async with process(home) as (server, path):
        assert (await me(path)).status_code == 200
        server.kill()
        await server.wait()
    assert files(home.folder) == ["bridle.sock", "server.json"]
    token = (home.folder / "token").read_text()
    async with served(home.folder) as after:
        assert after.ready.socket == path
        assert (await me(path)).status_code == 200
        address = read_address(home.folder)
        assert address
        assert address.pid == os.getpid()
        assert (home.folder / "token").read_text() == token
    assert files(home.folder) == []


async def test_it_can_be_started_again_at_once_on_its_port(home: Home) -> None:
    port = 0
    for _ in range(3):
        async with served(home.folder, port=port) as server:
            port = server.port
            # The server closes first, and its end of the connection lingers on.
            reader, writer = await server.raw()
            token = f"Authorization: Bearer {server.token}\r\nConnection: close"
            writer.write(f"GET {ME} HTTP/1.1\r\nHost: localhost:{port}\r\n{token}\r\n\r\n".encode())
            assert b" 200 " in await reader.read()
            writer.close()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.com"])
async def test_an_address_that_others_reach_must_be_meant(home: Home, host: str) -> None:
    with pytest.raises(AddressRefused, match="--allow-remote"):
        await serve(ServeSettings(home=home.folder, host=host, port=0), signals=())
    assert not home.folder.exists()


@pytest.mark.parametrize("host", ["192.0.2.1", "x" * 300])
async def test_an_address_that_is_none_of_ours_is_refused(home: Home, host: str) -> None:
    settings = ServeSettings(home=home.folder, host=host, port=0, allow_remote=True)
    with pytest.raises(AddressRefused, match="can't listen on"):
        await serve(settings, signals=())
    assert not home.folder.exists()


async def test_where_others_reach_it_that_is_warned_of(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        async with served(home.folder, host="0.0.0.0", allow_remote=True) as server:
            assert server.url == f"http://127.0.0.1:{server.port}"
            async with server.client(server.token) as client:
                assert (await client.get(ME)).status_code == 200
            async with server.client(server.token, host=f"box.example:{server.port}") as client:
                assert (await client.get(ME)).json()["code"] == "foreign_host"
    assert "other machines can reach" in caplog.text


async def test_it_speaks_ipv6(home: Home) -> None:
    async with served(home.folder, host="::1") as server:
        assert server.url == f"http://[::1]:{server.port}"
        async with server.client(server.token) as client:
            assert (await client.get(ME)).status_code == 200


# --- the socket in the home


def rights(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder whose path leaves room for a socket's, wherever tests have theirs."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="bridle-") as folder:
        yield Path(folder)


async def test_where_the_home_has_a_long_path_the_socket_is_elsewhere(
    home: Home, short: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short))
    folder = tmp_path / ("long" * 30)
    async with served(folder) as server:
        path = server.ready.socket
        assert path.startswith(f"{short}/")
        assert [rights(one) for one in (Path(path).parent, Path(path))] == [0o700, 0o600]
        address = read_address(folder)
        assert address
        assert address.socket == path
        assert (await me(path)).status_code == 200
    assert os.listdir(short) == []  # noqa: PTH208 - it is small


async def test_a_folder_for_it_that_is_too_long_is_passed_over(
    home: Home, short: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(short))
    async with served(folder) as server:
        assert server.ready.socket.startswith(f"{short}/")


async def test_a_folder_that_is_not_ours_alone_is_not_used_for_it(
    home: Home, short: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short))
    folder = tmp_path / ("long" * 30)
    [*_, path] = sockets.addresses_of(folder, "127.0.0.1", 1)
    Path(path).parent.mkdir(mode=0o755)
    with pytest.raises(AddressRefused, match="somebody else"):
        await serve(ServeSettings(home=folder, port=0), signals=())
    Path(path).parent.rmdir()
    Path(path).parent.symlink_to(tmp_path)
    with pytest.raises(AddressRefused, match="somebody else"):
        await serve(ServeSettings(home=folder, port=0), signals=())


# --- the end


def stream_words(server: Served) -> bytes:
    head = f"GET /api/v1/events HTTP/1.1\r\nHost: localhost:{server.port}\r\n"
    return f"{head}Authorization: Bearer {server.token}\r\n\r\n".encode()


async def test_streams_are_ended_by_the_server_when_it_ends(home: Home) -> None:
    async with served(home.folder) as server:
        reader, writer = await server.raw()
        writer.write(stream_words(server))
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        server.ready.stopping.ask()
        async with asyncio.timeout(LIMIT):
            said = await reader.read()
        assert said.endswith(b"0\r\n\r\n")  # to its end, and not cut off
        writer.close()
    assert files(home.folder) == []


def half_a_request(server: Served) -> tuple[bytes, bytes]:
    body = b'{"role": "reader", "name": "late"}'
    head = (
        f"POST /api/v1/tokens HTTP/1.1\r\nHost: localhost:{server.port}\r\n"
        f"Authorization: Bearer {server.token}\r\nContent-Length: {len(body)}\r\n"
        "Expect: 100-continue\r\nContent-Type: application/json\r\n\r\n"
    )
    return head.encode() + body[:5], body[5:]


async def begun(server: Served) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, bytes]:
    """A request that the server has begun to read."""
    reader, writer = await server.raw()
    first, rest = half_a_request(server)
    writer.write(first)
    await reader.readuntil(b"100 Continue\r\n\r\n")
    return reader, writer, rest


async def test_a_request_that_has_begun_comes_to_its_end(home: Home) -> None:
    async with served(home.folder) as server:
        reader, writer, rest = await begun(server)
        server.ready.stopping.ask()
        await server.house.closing.wait()
        with contextlib.suppress(ConnectionError):
            while True:  # until nobody is let in any more
                _, another = await server.raw()
                another.close()
        writer.write(rest)
        async with asyncio.timeout(LIMIT):
            assert b" 201 " in await reader.read()
        writer.close()


async def test_one_that_takes_too_long_is_cut_off(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridle.server.serving.GRACE_SECONDS", 0.2)
    async with served(home.folder) as server:
        reader, writer, _ = await begun(server)
        server.ready.stopping.ask()
        with contextlib.suppress(ConnectionError):
            async with asyncio.timeout(LIMIT):
                assert b" 201 " not in await reader.read()
        writer.close()


async def test_told_twice_it_ends_at_once(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridle.server.serving.GRACE_SECONDS", 600)
    async with served(home.folder) as server:
        reader, writer, _ = await begun(server)
        server.ready.stopping.ask()
        server.ready.stopping.ask()
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()


async def test_cancelled_it_leaves_nothing_behind(home: Home) -> None:
    ready: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    settings = ServeSettings(home=home.folder, port=0)
    task = asyncio.ensure_future(
        serve(settings, lambda told: ready.set_result(int(told.url.split(":")[2])), signals=())
    )
    port = await ready
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert files(home.folder) == []
    async with served(home.folder, port=port):
        pass


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_in_good_order(home: Home, number: int) -> None:
    async with process(home) as (server, _):
        server.send_signal(number)
        async with asyncio.timeout(LIMIT):
            assert await server.wait() == 0
    assert files(home.folder) == []


@pytest.mark.slow
async def test_a_signal_is_heeded_while_a_stream_is_open(home: Home) -> None:
    async with process(home) as (server, path):
        transport = httpx.AsyncHTTPTransport(uds=path, verify=False)
        async with (
            httpx.AsyncClient(transport=transport, base_url="http://localhost") as client,
            client.stream("GET", "/api/v1/events", timeout=LIMIT) as stream,
        ):
            server.send_signal(signal.SIGTERM)
            async for _ in stream.aiter_bytes():
                pass
        async with asyncio.timeout(LIMIT):
            assert await server.wait() == 0


# --- agents


async def test_agents_run_on_when_the_server_ends_and_are_found_again(home: Home) -> None:
    async with served(home.folder, stop_agents=False) as server:
        record = await home.start(server.supervisor, *WORKS)
        await until(server.supervisor, record.id, "running")
    async with served(home.folder) as server:
        assert server.supervisor.recovered.alive == (record.id,)
        assert server.supervisor.running == 1
    assert home.alive() == []  # these were to be stopped


async def test_agents_can_not_speak_to_the_server_unseen(home: Home) -> None:
    """Not even where a policy lets them do what they like."""

    def asks(port: int) -> tuple[dict[str, object], ...]:
        call = {"tool_name": "Bash", "input": {"command": f"curl -s http://127.0.0.1:{port}/"}}
        return ({"prompt": True}, {"init": {}}, {"ask": call, "id": "q1"}, {"result": "done"})

    async with served(home.folder) as server:
        supervisor = server.supervisor
        other = await home.start(supervisor, *asks(server.port + 1), policy="autonomous")
        await supervisor.wait(other.id, lambda one: one.turns == 1, LIMIT)
        ours = await home.start(supervisor, *asks(server.port), policy="autonomous")
        approval = await asked(supervisor, ours.id)
        assert "Bridle itself" in str(approval)
