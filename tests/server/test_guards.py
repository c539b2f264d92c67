"""Which names, pages and cookies are ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bridle.server.guards import Names, check_forgery
from bridle.server.problems import Problem

PORT = 7717


def scope(method: str = "GET", server: object = ("127.0.0.1", PORT), **headers: str) -> Any:
    pairs = [(key.replace("_", "-").encode(), value.encode()) for key, value in headers.items()]
    return {"method": method, "headers": pairs, "server": server}


def is_let_in(names: Names, asked: Any, *, is_local: bool = False) -> bool:
    code = refusal(lambda: names.check_origin(asked, names.check_host(asked, is_local=is_local)))
    assert code in ("", "foreign_host", "foreign_origin", "bad_request")
    return not code


def refusal(check: Callable[[], None]) -> str:
    """The code with which it is refused; "" where it is not."""
    try:
        check()
    except Problem as problem:
        return problem.code
    return ""


@pytest.mark.parametrize(
    "host", ["127.0.0.1:7717", "localhost:7717", "LOCALHOST:7717", "[::1]:7717"]
)
def test_the_names_of_this_machine_are_ours(host: str) -> None:
    assert is_let_in(Names("127.0.0.1", PORT), scope(host=host))


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example:7717",
        "evil.example",
        "127.0.0.1",
        "127.0.0.1:80",
        "127.0.0.1:77170",
        "127.0.0.1:07717",
        "127.0.0.2:7717",
        "localhost.:7717",
        "localhost.evil.example:7717",
        "127.0.0.1.nip.io:7717",
        "0x7f.1:7717",
        "2130706433:7717",
        "127.0.0.1:7717@evil.example",
        "evil.example#127.0.0.1:7717",
        "127.0.0.1:7717,evil.example",
        " 127.0.0.1:7717 x",
    ],
)
def test_a_name_that_is_not_ours_is_refused(host: str) -> None:
    assert not is_let_in(Names("127.0.0.1", PORT), scope(host=host))


def test_a_request_without_a_name_or_with_two_is_refused() -> None:
    names = Names("127.0.0.1", PORT)
    assert not is_let_in(names, scope())
    twice = scope(host="127.0.0.1:7717")
    twice["headers"].append((b"host", b"127.0.0.1:7717"))
    assert not is_let_in(names, twice)


def test_bound_to_all_addresses_it_answers_to_the_one_that_was_called_and_to_no_name() -> None:
    names = Names("0.0.0.0", PORT)
    assert is_let_in(names, scope(server=("192.0.2.7", PORT), host="192.0.2.7:7717"))
    assert not is_let_in(names, scope(server=("192.0.2.7", PORT), host="192.0.2.8:7717"))
    assert not is_let_in(names, scope(server=("192.0.2.7", PORT), host="box.example:7717"))
    assert is_let_in(names, scope(server=("2001:db8::1", PORT), host="[2001:db8::1]:7717"))


def test_a_further_name_is_answered_with_our_port_and_without() -> None:
    names = Names("127.0.0.1", PORT, ["Box.example", "proxy.example:8443"])
    for host in ("box.example", "box.example:7717", "proxy.example:8443"):
        assert is_let_in(names, scope(host=host))
        for scheme in ("http", "https"):
            assert is_let_in(names, scope(host=host, origin=f"{scheme}://{host}"))
    assert not is_let_in(names, scope(host="box.example:1"))
    assert not is_let_in(names, scope(host="proxy.example"))


def test_the_port_that_everybody_knows_may_be_left_out() -> None:
    assert is_let_in(Names("127.0.0.1", 80), scope(host="localhost"))


@pytest.mark.parametrize("host", ["localhost", "bridle", "localhost:1", "127.0.0.1", "[::1]:5"])
def test_over_the_socket_any_plain_name_does(host: str) -> None:
    assert is_let_in(Names("127.0.0.1", PORT), scope(host=host, server=None), is_local=True)


@pytest.mark.parametrize("host", ["", "evil.example", "evil.example:80", "127.0.0.1.nip.io"])
def test_over_the_socket_a_name_from_the_web_does_not(host: str) -> None:
    """A browser can be led there by a tunnel."""
    assert not is_let_in(Names("127.0.0.1", PORT), scope(host=host, server=None), is_local=True)


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "http://127.0.0.1:3000",
        "http://localhost:7717",
        "https://127.0.0.1:7717",
        "http://127.0.0.1:7717.evil.example",
        "http://127.0.0.1",
        "null",
        "",
        "file://",
        "http://127.0.0.1:7717/",
    ],
)
@pytest.mark.parametrize("is_local", [False, True])
def test_a_page_from_elsewhere_is_refused(origin: str, is_local: bool) -> None:
    asked = scope(host="127.0.0.1:7717", origin=origin)
    assert not is_let_in(Names("127.0.0.1", PORT), asked, is_local=is_local)


def test_our_own_page_is_let_in() -> None:
    names = Names("127.0.0.1", PORT)
    assert is_let_in(names, scope(host="127.0.0.1:7717", origin="http://127.0.0.1:7717"))
    form = scope(host="127.0.0.1:7717", origin="null", sec_fetch_site="same-origin")
    assert is_let_in(names, form)


@pytest.mark.parametrize(
    ("method", "headers", "is_ours"),
    [
        ("POST", {"origin": "http://127.0.0.1:7717"}, True),
        ("POST", {"sec_fetch_site": "same-origin"}, True),
        ("POST", {}, False),
        ("POST", {"origin": "null"}, False),
        ("POST", {"sec_fetch_site": "same-site"}, False),
        ("POST", {"sec_fetch_site": "none"}, False),
        ("POST", {"origin": "http://127.0.0.1:7717", "sec_fetch_site": "cross-site"}, False),
        ("DELETE", {"sec_fetch_site": "cross-site"}, False),
        ("PUT", {}, False),
        ("GET", {}, True),
        ("GET", {"sec_fetch_site": "none"}, True),
        ("GET", {"sec_fetch_site": "same-origin"}, True),
        ("GET", {"sec_fetch_site": "same-site"}, False),
        ("GET", {"sec_fetch_site": "cross-site", "sec_fetch_mode": "no-cors"}, False),
        ("GET", {"sec_fetch_site": "same-site", "sec_fetch_mode": "navigate"}, True),
    ],
)
def test_with_a_cookie_it_must_show_that_the_page_is_ours(
    method: str, headers: dict[str, str], is_ours: bool
) -> None:
    code = refusal(lambda: check_forgery(scope(method, **headers)))
    assert code == ("" if is_ours else "foreign_origin")
