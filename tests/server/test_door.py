"""Coming in: with a token, with a ticket and its cookie, by the socket; and what goes out."""

from __future__ import annotations

import stat
from collections.abc import AsyncIterator
from http.cookies import Morsel, SimpleCookie
from pathlib import Path

import httpx
import msgspec
import pytest

from bridle.home.address import Address, read_address
from bridle.server.login import TICKET_SECONDS
from bridle.server.token_file import login_name
from tests.supervisor.homes import TURN, Home

from .served import Served, served

ME = "/api/v1/me"
TOKENS = "/api/v1/tokens"


@pytest.fixture
async def server(home: Home) -> AsyncIterator[Served]:
    async with served(home.folder) as server:
        yield server


def set_cookie(answer: httpx.Response) -> Morsel[str]:
    [morsel] = SimpleCookie(answer.headers["set-cookie"]).values()
    return morsel


async def logged_in(server: Served) -> dict[str, str]:
    """The header of a browser that is."""
    async with server.client() as browser:
        cookie = set_cookie(await browser.get(server.ready.login))
    return {"cookie": f"{cookie.key}={cookie.value}"}


# --- files


async def test_what_is_in_the_home_is_its_owners_alone(server: Served) -> None:
    for name in ("token", "server.json", "bridle.sock"):
        found = (server.home / name).stat()
        assert stat.S_IMODE(found.st_mode) == 0o600, name
    assert stat.S_IMODE(server.home.stat().st_mode) == 0o700
    assert stat.S_ISSOCK((server.home / "bridle.sock").stat().st_mode)


async def test_the_home_says_where_the_server_is(server: Served) -> None:
    address = read_address(server.home)
    assert isinstance(address, Address)
    assert (address.url, address.socket) == (server.url, server.ready.socket)
    assert msgspec.json.decode((server.home / "server.json").read_bytes())["version"]


async def test_an_address_that_others_could_have_written_is_not_believed(
    server: Served, tmp_path: Path
) -> None:
    (server.home / "server.json").chmod(0o644)
    assert read_address(server.home) is None
    (tmp_path / "server.json").write_text("{")
    (tmp_path / "server.json").chmod(0o600)
    assert read_address(tmp_path) is None


# --- as whom


async def test_over_the_socket_one_is_whoever_owns_the_process(server: Served) -> None:
    async with server.local() as client:
        caller = (await client.get(ME)).json()
    assert (caller["role"], caller["name"], caller["via"]) == ("person", login_name(), "terminal")


async def test_with_a_token_one_is_whoever_it_is_for(server: Served, home: Home) -> None:
    record = await home.start(server.supervisor, *TURN, name="worker")
    async with server.client(server.token) as person:
        for role, session in (("reader", ""), ("person", ""), ("agent", "worker")):
            wanted = {"role": role, "name": "ada", "session": session}
            made = (await person.post(TOKENS, json=wanted)).json()
            async with server.client(made["text"]) as client:
                caller = (await client.get(ME)).json()
            assert caller == {
                "role": role,
                "name": "ada",
                "via": "api",
                "session": record.id if session else "",
                "token": made["token"]["id"],
            }


async def test_a_token_is_shown_once_and_counts_until_it_is_taken_away(server: Served) -> None:
    async with server.client(server.token) as person:
        made = (await person.post(TOKENS, json={"role": "reader", "name": "ada"})).json()
        listed = await person.get(TOKENS)
        assert made["text"] not in listed.text
        assert made["token"] in listed.json()
        assert "digest" not in listed.text
        async with server.client(made["text"]) as reader:
            assert (await reader.get(ME)).status_code == 200
            gone = await person.delete(f"{TOKENS}/{made['token']['id']}")
            assert gone.status_code == 204
            assert (await reader.get(ME)).status_code == 401
        again = await person.delete(f"{TOKENS}/{made['token']['id']}")
        assert (again.status_code, again.json()["code"]) == (404, "unknown_token")


async def test_the_homes_own_token_is_replaced_when_it_is_taken_away(server: Served) -> None:
    old = server.token
    [first] = server.house.tokens.list()
    async with server.client(old) as person:
        assert (await person.delete(f"{TOKENS}/{first.id}")).status_code == 204
        assert (await person.get(ME)).status_code == 401
    async with server.client(server.token) as person:
        assert (await person.get(ME)).status_code == 200


IMPOSSIBLE = [
    ({"role": "agent", "name": "a"}, "invalid_body"),
    ({"role": "reader", "name": "a", "session": "x"}, "invalid_body"),
    ({"role": "agent", "name": "a", "session": "nobody"}, "unknown_session"),
    ({"role": "god", "name": "a"}, "invalid_body"),
    ({"role": "reader", "name": " "}, "invalid_name"),
    ({"role": "reader", "name": "a\nb"}, "invalid_name"),
    ({"role": "reader", "name": "x" * 201}, "invalid_name"),
    ({"role": "reader", "name": "a", "digest": "x"}, "unknown_field"),
]


async def test_a_token_that_makes_no_sense_is_not_made(server: Served) -> None:
    async with server.client(server.token) as person:
        for wanted, code in IMPOSSIBLE:
            answer = await person.post(TOKENS, json=wanted)
            assert answer.json()["code"] == code
            assert len(server.house.tokens.list()) == 1


# --- a browser


async def test_a_ticket_turns_into_a_cookie_and_leaves_the_address(server: Served) -> None:
    async with server.client() as browser:
        answer = await browser.get(server.ready.login)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        cookie = set_cookie(answer)
        assert cookie["httponly"]
        assert cookie["samesite"].lower() == "strict"
        assert (cookie["path"], cookie["domain"]) == ("/", "")
        assert int(cookie["max-age"]) == 30 * 24 * 3600
        assert server.ready.login.rpartition("=")[2] not in answer.text + str(answer.headers)
        page = await browser.get("/")
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert f"You are {login_name()}" in page.text
    assert "<script" not in page.text


async def test_a_ticket_does_not_work_twice(server: Served) -> None:
    async with server.client() as browser, server.client() as thief:
        assert (await browser.get(server.ready.login)).status_code == 303
        answer = await thief.get(server.ready.login)
        assert (answer.status_code, answer.json()["code"]) == (403, "ticket_used")
        assert "set-cookie" not in answer.headers
        assert (await thief.get("/")).status_code == 401


async def test_a_ticket_does_not_work_after_ten_minutes(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = server.house.now()
    monkeypatch.setattr(server.house.tickets, "_now", lambda: start + TICKET_SECONDS + 1)
    async with server.client() as browser:
        assert (await browser.get(server.ready.login)).json()["code"] == "ticket_used"


async def test_a_person_can_have_another_ticket(server: Served) -> None:
    async with server.local() as person, server.client() as browser:
        url = (await person.post("/api/v1/tickets")).json()["url"]
        assert url.startswith(f"{server.url}/login?ticket=")
        assert (await browser.get(url)).status_code == 303
        caller = (await browser.get(ME)).json()
    assert (caller["name"], caller["via"]) == (login_name(), "web")


async def test_a_cookie_alone_changes_nothing(server: Served) -> None:
    cookie = await logged_in(server)
    wanted = {"role": "reader", "name": "a"}
    async with server.client(**cookie) as browser:
        for headers in ({}, {"sec-fetch-site": "same-site"}, {"sec-fetch-site": "cross-site"}):
            answer = await browser.post(TOKENS, json=wanted, headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (403, "foreign_origin")
        for headers in ({"origin": server.url}, {"sec-fetch-site": "same-origin"}):
            assert (await browser.post(TOKENS, json=wanted, headers=headers)).status_code == 201


async def test_a_cookie_is_no_token_and_a_token_no_cookie(server: Served) -> None:
    [name, _, value] = (await logged_in(server))["cookie"].partition("=")
    async with server.client(value) as client:
        assert (await client.get(ME)).status_code == 401
    async with server.client(cookie=f"{name}={server.token}") as client:
        assert (await client.get(ME)).status_code == 401


async def test_the_cookie_is_found_among_those_of_others_on_this_host(server: Served) -> None:
    ours = (await logged_in(server))["cookie"]
    name = ours.partition("=")[0]
    for cookies in (
        f'a="b;c"; {ours}; x',
        f"{name}=tossed; {ours}",
        f"{ours}; {name}=",
        f"=; {ours}",
    ):
        async with server.client(cookie=cookies) as browser:
            assert (await browser.get(ME)).status_code == 200


async def test_logging_out_forgets_the_browser(server: Served) -> None:
    cookie = await logged_in(server)
    async with server.client(**cookie) as browser:
        form = {"origin": "null", "sec-fetch-site": "same-origin", "sec-fetch-mode": "navigate"}
        answer = await browser.post("/logout", headers=form)
        assert answer.status_code == 303
        assert set_cookie(answer)["max-age"] == "0"
        assert (await browser.get(ME)).status_code == 401
    assert [token.kind for token in server.house.tokens.list()] == ["token"]


async def test_a_login_outlives_the_server_and_can_be_taken_away(home: Home) -> None:
    async with served(home.folder) as first:
        cookie = await logged_in(first)
        port = first.port
    async with served(home.folder, port=port) as second, second.client(**cookie) as browser:
        assert (await browser.get(ME)).json()["via"] == "web"
        [login] = [one for one in second.house.tokens.list() if one.kind == "login"]
        async with second.local() as person:
            await person.delete(f"{TOKENS}/{login.id}")
        assert (await browser.get(ME)).status_code == 401


async def test_who_is_not_logged_in_is_told_how_to(server: Served) -> None:
    async with server.client() as browser:
        page = await browser.get("/")
    assert (page.status_code, page.headers["content-type"]) == (401, "text/html; charset=utf-8")
    assert "bridle url" in page.text
    assert "You are" not in page.text


async def test_who_can_not_be_looked_at_is_not_let_in(
    server: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("bridle.server.owners.TABLES", ("/proc/self/mem", "/proc/self/mem"))
    async with server.client(server.token) as client:
        answer = await client.get(ME)
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert answer.headers["x-frame-options"] == "DENY"
    assert "OSError" in caplog.text


async def test_there_is_no_other_protocol_to_change_to(
    server: Served, caplog: pytest.LogCaptureFixture
) -> None:
    headers = {"connection": "upgrade", "upgrade": "websocket"}
    async with server.client(server.token, **headers) as client:
        assert (await client.get(ME)).status_code == 200
    assert caplog.text == ""


# --- what goes out


PATHS = ["/", ME, "/nothing", "/login?ticket=x", "/api/v1/tokens/x"]


async def test_every_answer_keeps_browsers_strict(server: Served) -> None:
    async with server.client() as stranger, server.client(server.token) as person:
        for path in PATHS:
            for client in (stranger, person):
                headers = (await client.get(path)).headers
                assert headers["referrer-policy"] == "no-referrer"
                assert headers["cache-control"] == "no-store"
                assert headers["x-content-type-options"] == "nosniff"
                assert headers["x-frame-options"] == "DENY"
                assert headers["cross-origin-resource-policy"] == "same-origin"
                policy = headers["content-security-policy"]
                assert "default-src 'none'" in policy
                assert "frame-ancestors 'none'" in policy
                assert "unsafe" not in policy
                assert "server" not in headers


async def test_what_a_caller_says_of_where_they_are_is_not_believed(server: Served) -> None:
    headers = {"x-forwarded-for": "192.0.2.1", "x-forwarded-host": "evil.example"}
    async with server.client(server.token, **headers) as client:
        assert (await client.get(ME)).status_code == 200
    async with server.client(server.token, host="evil.example", **headers) as client:
        assert (await client.get(ME)).status_code == 421
