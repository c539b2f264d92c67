"""docs/api.md tells all: each route with who may call it, each code, each metric."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import httpx
from litestar import Litestar
from litestar.di import Provide
from litestar.routes import HTTPRoute

from bridle.server import answers
from bridle.server.access import roles_of
from bridle.server.app import PREFIX, api_routes
from bridle.server.openapi import description_route

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "api.md").read_text()
ROW = re.compile(r"^\| `([A-Z]+) (\S+)`( \(at the root\))? \| ([a-z, ]+) \| (.+) \|$", re.M)


def test_every_route_is_told_with_who_may_and_what_it_does() -> None:
    described = {
        (method, path if at_root else f"{PREFIX}{path}"): set(who.split(", "))
        for method, path, at_root, who, _ in ROW.findall(PAGE)
    }
    assert described == _routes()
    assert all(len(words) > 10 for *_, words in ROW.findall(PAGE))


def _routes() -> dict[tuple[str, str], set[str]]:
    app = Litestar(
        [*api_routes(), description_route([])],
        dependencies={"house": Provide(lambda: None, sync_to_thread=False)},
        openapi_config=None,
        logging_config=None,  # else it changes what all that follows logs
    )
    found: dict[tuple[str, str], set[str]] = {}
    for route in app.routes:
        if isinstance(route, HTTPRoute):
            for method, (handler, _) in route.route_handler_map.items():
                path = route.path_format
                path = f"{PREFIX}{path}" if path == "/openapi.json" else path
                if method not in ("OPTIONS", "HEAD"):
                    found[method, path] = {str(role) for role in roles_of(handler)} or {"anybody"}
    return found


def test_every_code_is_told_with_its_status() -> None:
    rows = re.findall(r"^\| (`[a-z_`, ]+`) \| ([0-9, ]+) \| .+ \|$", PAGE, re.M)
    told = {
        (code, int(status))
        for codes, statuses in rows
        for code in re.findall(r"`([a-z_]+)`", codes)
        for status in statuses.split(", ")
    }
    used = _codes()
    assert {code for code, _ in told} == {code for code, _ in used}
    assert used <= told


def _codes() -> set[tuple[str, int]]:
    found = {(code, status) for status, (code, _) in answers._BY_STATUS.items()}
    source = ROOT / "src" / "bridle"
    for file in (*(source / "server").rglob("*.py"), *(source / "loopback/http").glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and _name(node) in ("Problem", "Trouble", "refuse"):
                match node.args:
                    case [
                        *_,
                        ast.Constant(value=int(status)),
                        ast.Constant(value=str(code)),
                        _,
                        _,
                    ] | [ast.Constant(value=int(status)), ast.Constant(value=str(code)), *_]:
                        found.add((code, status))
    return found


def _name(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


async def test_every_metric_is_told(client: httpx.AsyncClient) -> None:
    await client.get("/me")
    text = (await client.get("http://localhost/metrics")).text
    given = set(re.findall(r"^# TYPE (\S+)", text, re.M))
    told = set(re.findall(r"`(bridle_[a-z_]+)[`{]", PAGE))
    # The library adds to each that counts when that began.
    assert {name for name in given if not name.endswith("_created")} == told
