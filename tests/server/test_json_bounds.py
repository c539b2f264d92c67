"""A body that would fill the memory once it is parsed is refused before anybody parses it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridle.server.bodies import BodyLimits
from bridle.server.json_bounds import JsonBounds, JsonLimits
from bridle.server.problems import Problem
from tests.levels import tries
from tests.loopback.doors import serving, token_for
from tests.operations import operations
from tests.supervisor.homes import TURN, Home

from .served import Served, served

MB = 1024 * 1024
PIECE = 65536
LIMIT = JsonLimits().values


def bounded(body: bytes, limits: JsonLimits | None = None, piece: int = PIECE) -> str:
    """The code of what is wrong with it; "" if nothing is."""
    bounds = JsonBounds(limits or JsonLimits())
    try:
        for at in range(0, len(body), piece):
            bounds.add(body[at : at + piece])
    except Problem as problem:
        return problem.code
    return ""


def test_what_has_too_many_values_is_refused() -> None:
    for body in (
        b"[" + b"{}," * LIMIT + b"{}]",
        b"[" + b"1," * LIMIT + b"1]",
        b'["' + b'","' * LIMIT + b'"]',
        b"[[]" * LIMIT,
        b'{"a":' + b"[],[]," * LIMIT,
        b'""' * LIMIT * 2,
    ):
        assert bounded(body) == "too_many_values" or body.startswith(b"[[]")
    assert bounded(b"[" * 65) == "invalid_body"
    assert bounded(b'{"a":' * 65) == "invalid_body"
    assert bounded(b"]" * 10) == "invalid_body"
    assert bounded('["a"]'.encode("utf-16")) == "invalid_body"


def test_how_large_a_text_is_does_not_matter() -> None:
    for body in (
        json.dumps({"prompt": '{"a": [1, 2, "x\\"]\n' * 200_000}).encode(),
        json.dumps(["[" * 100_000, "," * 1_000_000, '"' * 100_000, "\\" * 100_000]).encode(),
        b"[" + b"1," * (LIMIT - 2) + b"1]",
        b"[" * 64 + b"]" * 64,
        b"",
        b"ticket=abc&x=y",
    ):
        assert bounded(body) == ""


FEW = JsonLimits(values=2_000)
HOSTILE = (b"{},", b"1,", b'"",', b'""', b"[]", b":", b'"\\"', b"\\", b"x", b"]", b'"a"', b"{")


def test_it_takes_no_more_work_than_the_limit_allows() -> None:
    for one in HOSTILE:
        for start in (b"", b"[", b'"', b'["'):
            body = start + one * (MB // len(one))
            # Of each value a few; of the pieces some.
            operations(lambda body=body: bounded(body, FEW), 12 * FEW.values)  # type: ignore[misc]


DOCUMENTS = st.recursive(
    st.none() | st.integers() | st.text(st.sampled_from('a"\\[]{},:\n é')),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
)


def counted(document: Any) -> int:
    match document:
        case dict():
            commas = max(len(document) - 1, 0)
            return 1 + commas + sum(1 + counted(one) for one in document.values())
        case list():
            return 1 + max(len(document) - 1, 0) + sum(map(counted, document))
        case str():
            return 1
        case _:
            return 0


@settings(max_examples=tries(100, 1_000, 10_000))
@given(DOCUMENTS, st.booleans(), st.integers(1, 9))
def test_the_count_is_right_wherever_the_pieces_end(
    document: Any, is_ascii: bool, piece: int
) -> None:
    body, count = json.dumps(document, ensure_ascii=is_ascii).encode(), counted(document)
    assert bounded(body, JsonLimits(values=count, depth=99), piece) == ""
    if count:
        is_refused = bounded(body, JsonLimits(values=count - 1, depth=99), piece)
        assert is_refused == "too_many_values"


@pytest.fixture
async def server(home: Home) -> AsyncIterator[Served]:
    async with served(home.folder, bodies=BodyLimits(json=JsonLimits(values=100))) as server:
        yield server


MANY = b"[" + b"{}," * 200 + b"{}]"


async def test_every_route_that_reads_a_body_has_the_limit(server: Served, home: Home) -> None:
    record = await home.start(server.supervisor, *TURN)
    async with server.client(server.token) as client:
        description = (await client.get("/api/v1/openapi.json")).json()
        tried = 0
        for path, methods in description["paths"].items():
            for method, route in methods.items():
                if "requestBody" not in route:
                    continue
                address = path.replace("{session}", record.id).replace("{folder}", "x")
                for name in ("approval", "rule", "policy", "name", "token"):
                    address = address.replace(f"{{{name}}}", "x")
                answer = await client.request(method.upper(), address, content=MANY)
                told = (answer.status_code, answer.json().get("code"))
                assert told == (413, "too_many_values") or answer.status_code == 404, address
                tried += told[0] == 413
        assert tried > 10


@pytest.mark.parametrize("path", ["/rpc", "/mcp"])
async def test_so_have_the_doors_of_agents(home: Home, path: str) -> None:
    async with serving(home) as server:
        token, _ = await token_for(server, home, "root")
        async with server.client(token) as client:
            headers = {
                "content-type": "application/json",
                "accept": "application/json, text/event-stream",
            }
            body = b"[" + b"{}," * LIMIT + b"{}]"
            answer = await client.post(path, content=body, headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (413, "too_many_values")
            answer = await client.post(path, content=b"[" * 1000, headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (400, "invalid_body")
