"""JSON-RPC 2.0 as its specification has it, and the tools behind it."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridle.loopback import METHODS
from bridle.loopback.http.rpc import LARGEST_BATCH, read, request_in
from tests.levels import tries
from tests.supervisor.homes import TURN, Home, until

from .doors import serving, token_for

LIST = {"jsonrpc": "2.0", "method": "claudecode.list"}


def error(code: int, id_: Any = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "error": {"code": code}}


def plain(answer: Any) -> Any:
    """Without the words, and of what a call gave only that it did."""
    if isinstance(answer, list):
        return [plain(one) for one in answer]
    if "error" in answer:
        assert answer["error"]["message"]
        return {**answer, "error": {"code": answer["error"]["code"]}}
    return {**answer, "result": answer["result"]["type"]}


@pytest.fixture
async def client(home: Home) -> Any:
    async with serving(home) as server:
        token, _ = await token_for(server, home, "root")
        async with server.client(token) as client:
            yield client


async def ask(client: httpx.AsyncClient, body: Any) -> Any:
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = await client.post("/rpc", content=sent)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/json"
    return answer.json()


async def test_an_id_goes_back_as_it_came(client: httpx.AsyncClient) -> None:
    for id_ in (1, 0, -7, 1.5, "x", "", "1", None, 10**30, "é", "\u2028"):
        answer = await ask(client, {**LIST, "id": id_})
        assert plain(answer) == {"jsonrpc": "2.0", "id": id_, "result": "ok"}
        assert type(answer["id"]) is type(id_)


#: What is sent, and what is answered.
NO_CALLS: list[tuple[Any, Any]] = [
    (b"", error(-32700)),
    (b"{", error(-32700)),
    (b'{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]', error(-32700)),
    (b"\xff\xfe", error(-32700)),
    (b'{"a": NaN}', error(-32700)),
    (b'{"a": 1e999}', error(-32700)),
    (b'{"a": "\\ud800"}', error(-32700)),
    (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"claudecode.list"}', error(-32700)),
    (
        b'{"jsonrpc":"2.0","id":1,"method":"claudecode.list","params":{"a":1,"a":2}}',
        error(-32700),
    ),
    (b"1", error(-32600)),
    (b"null", error(-32600)),
    (b'"x"', error(-32600)),
    (b"{}", error(-32600)),
    ([], error(-32600)),
    ([[]], [error(-32600)]),
    ([1, 2], [error(-32600), error(-32600)]),
    ([{**LIST, "id": 1}] * (LARGEST_BATCH + 1), error(-32600)),
    ({"method": "claudecode.list", "id": 1}, error(-32600, 1)),
    ({**LIST, "jsonrpc": "1.0", "id": 1}, error(-32600, 1)),
    ({**LIST, "jsonrpc": 2.0, "id": 1}, error(-32600, 1)),
    ({**LIST, "id": True}, error(-32600)),
    ({**LIST, "id": [1]}, error(-32600)),
    ({**LIST, "id": {}}, error(-32600)),
    ({**LIST, "method": 1, "id": "m"}, error(-32600, "m")),
    ({"jsonrpc": "2.0", "id": 1}, error(-32600, 1)),
    ({**LIST, "params": "bar", "id": 1}, error(-32600, 1)),
    ({**LIST, "params": None, "id": 1}, error(-32600, 1)),
    ({**LIST, "method": "foobar", "id": "1"}, error(-32601, "1")),
    ({**LIST, "method": "claudecode_list", "id": 1}, error(-32601, 1)),
    ({**LIST, "method": "rpc.discover", "id": 1}, error(-32601, 1)),
    ({**LIST, "method": "", "id": 1}, error(-32601, 1)),
    ({**LIST, "params": [], "id": 1}, error(-32602, 1)),
    ({**LIST, "params": {"wrong": 1}, "id": 1}, error(-32602, 1)),
    ({**LIST, "params": {"limit": "x"}, "id": 1}, error(-32602, 1)),
    ({**LIST, "params": {"_meta": []}, "id": 1}, error(-32602, 1)),
    ({**LIST, "params": {"_meta": {"bridle/requestId": {}}}, "id": 1}, error(-32602, 1)),
    ({**LIST, "method": "claudecode.get", "params": {"name": 7}, "id": 1}, error(-32602, 1)),
]


@pytest.mark.slow
async def test_what_is_no_call_is_told_by_its_code(client: httpx.AsyncClient) -> None:
    for body, expected in NO_CALLS:
        assert plain(await ask(client, body)) == expected, body


async def test_in_a_batch_each_that_is_no_call_is_told_by_its_code(
    client: httpx.AsyncClient,
) -> None:
    rows = [(body, expected) for body, expected in NO_CALLS if isinstance(body, dict)]
    assert plain(await ask(client, [body for body, _ in rows])) == [told for _, told in rows]
    call = {**LIST, "id": 1, "method": "nobody.knows"}
    largest: list[Any] = [call] * LARGEST_BATCH
    assert plain(await ask(client, largest)) == [error(-32601, 1)] * LARGEST_BATCH
    for body in ([], [*largest, call]):
        assert plain(await ask(client, body)) == error(-32600)


def test_what_is_no_json_or_can_be_read_in_two_ways_is_not_read() -> None:
    texts = [
        body for body, expected in NO_CALLS if isinstance(body, bytes) and expected == error(-32700)
    ]
    for text in texts:
        with pytest.raises(ValueError):  # noqa: PT011 - the words are the parser's
            read(text)
    with pytest.raises(ValueError, match="'id' is there twice"):
        read(b'{"jsonrpc":"2.0","id":1,"id":2,"method":"claudecode.list"}')
    with pytest.raises(ValueError, match="NaN is no number"):
        read(b'{"a": NaN}')
    with pytest.raises(ValueError, match="too large"):
        read(b'{"a": 1e999}')


async def test_a_batch_is_answered_in_order_without_its_notifications(
    client: httpx.AsyncClient,
) -> None:
    batch = [
        {**LIST, "id": "1"},
        LIST,
        {**LIST, "method": "nobody.knows"},
        {**LIST, "id": "2", "params": {}},
        {"foo": "boo"},
        {**LIST, "method": "foo.get", "id": "5"},
        {**LIST, "id": 9, "method": "claudecode.get", "params": {"session_id": "x"}},
    ]
    assert plain(await ask(client, batch)) == [
        {"jsonrpc": "2.0", "id": "1", "result": "ok"},
        {"jsonrpc": "2.0", "id": "2", "result": "ok"},
        error(-32600),
        error(-32601, "5"),
        {"jsonrpc": "2.0", "id": 9, "result": "error"},
    ]


async def test_to_notifications_nothing_is_answered(client: httpx.AsyncClient) -> None:
    unknown, wrong = {**LIST, "method": "nobody.knows"}, {**LIST, "params": []}
    for body in (LIST, [LIST, LIST], unknown, wrong):
        answer = await client.post("/rpc", json=body)
        assert (answer.status_code, answer.content) == (204, b"")


async def test_what_a_call_refuses_is_its_result(client: httpx.AsyncClient) -> None:
    for dotted in (method.dotted for method in METHODS.values()):
        assert dotted.count(".") == 1
    answer = await ask(
        client, {**LIST, "id": 1, "method": "claudecode.get", "params": {"session_id": "x"}}
    )
    assert answer["result"]["type"] == "error"
    assert answer["result"]["code"] == "not_found"


async def test_other_methods_than_post_are_refused(client: httpx.AsyncClient) -> None:
    for method in ("GET", "DELETE", "PUT", "OPTIONS"):
        answer = await client.request(method, "/rpc")
        assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")


def test_many_names_of_which_the_last_is_there_twice_are_read_in_one_go() -> None:
    names = [*(f"name-{number}" for number in range(200_000)), "x"]
    body = json.dumps(dict.fromkeys(names, 0))[:-1] + ', "x": 1}'
    # Looked for one by one, it takes a quarter of an hour.
    with pytest.raises(ValueError, match="'x' is there twice"):
        read(body.encode())


async def test_what_is_wrong_is_told_with_what_would_be_right(client: httpx.AsyncClient) -> None:
    async def said(method: str, **params: Any) -> str:
        answer = await ask(client, {"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        return str(answer["error"]["message"])

    assert "claudecode.poll" in await said("claudecode_poll")
    assert "'turn_end'" in await said("claudecode.poll", name="x", until="done")
    assert "there is live_only, limit" in await said("claudecode.list", live=True)


async def test_a_notification_has_its_effect_and_a_call_that_comes_twice_has_it_once(
    home: Home,
) -> None:
    async with serving(home) as server:
        record = await home.start(
            server.supervisor, *TURN, prompt=None, loopback=True, policy="autonomous"
        )
        await until(server.supervisor, record.id, "idle")
        _, token = await server.house.tokens.create("agent", "x", record.id)
        async with server.client(token) as client:
            create = {"jsonrpc": "2.0", "method": "claudecode.create"}
            await client.post("/rpc", json={**create, "params": {"name": "a"}})
            meta = {"_meta": {"bridle/requestId": "k"}}
            asked = {**create, "id": 1, "params": {"name": "b", **meta}}
            made = [(await ask(client, asked))["result"]["id"] for _ in range(2)]
            batch = [
                {**LIST, "id": 1, "method": "claudecode.chat_async"}
                | {"params": {"name": "b", "prompt": "go"}},
                {**LIST, "id": 2, "method": "claudecode.list"},
            ]
            told, listed = (one["result"] for one in await ask(client, batch))
        assert made[0] == made[1]
        assert told["type"] == "started"
        assert {one["name"] for one in listed["sessions"]} == {"a", "b"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
@settings(max_examples=tries(50, 500), deadline=None)
def test_whatever_json_it_is_it_is_read_as_it_is_or_refused(value: Any) -> None:
    text = json.dumps(value)
    try:
        found = read(text.encode())
    except ValueError:
        assert "Infinity" in text or "e+" in text
        return
    assert found == value
    try:
        request = request_in(found)
    except ValueError:
        return
    assert found["jsonrpc"] == "2.0"
    assert request.method == found["method"]


@given(st.binary(max_size=40))
@settings(max_examples=tries(50, 500), deadline=None)
def test_whatever_bytes_they_are_they_are_read_or_refused(body: bytes) -> None:
    try:
        read(body)
    except ValueError:
        return
    json.loads(body)
