"""The description of the API (OpenAPI 3.1), made from the routes and their Structs.

Owns what a description says beside the shapes: who may call, which errors can come, examples. The
shapes are those that bodies are read and written with, so they can't be told wrongly.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterable, Iterator, Sequence
from types import UnionType
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin

import msgspec
from litestar import Litestar, Response, get
from litestar.di import Provide
from litestar.handlers import HTTPRouteHandler
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.routes import HTTPRoute
from litestar.types import ControllerRouterHandler
from msgspec import Struct

from .. import __version__
from .access import Role, roles_of, takes
from .problems import MEDIA_TYPE, ProblemDetails
from .streams.sending import MEDIA_TYPE as EVENT_STREAM

JSON = "application/json"
REF = "#/components/schemas/{name}"

DESCRIPTION = """\
Run Claude Code agents, decide what they may do, keep every event.

Times are unix seconds. A session is named by its id or its name. Bodies with a field that is not
known are refused. Every error is a problem (RFC 9457) with a `code` for programs, what is wrong
(`detail`) and what to do about it (`remedy`). What looks like a key, a token or a password is shown
as `[redacted:KIND]`; people may see all with `?reveal=true`."""

#: The first part of the address -> what it is about.
TAGS = {
    "sessions": "Agents: made, told, stopped, looked at.",
    "conversations": "What Claude Code has stored by itself.",
    "approvals": "What agents ask, and people decide.",
    "rules": "What people had remembered when they decided.",
    "policies": "What agents may do.",
    "trust": "Folders whose settings may be used.",
    "events": "What happens, as it does.",
    "usage": "What was used.",
    "server": "The server itself, and who may come in.",
}

_ROLES: dict[Role, str] = {
    "person": "a person's token",
    "reader": "a read-only token",
    "agent": "the token of an agent (for itself and what is below it)",
    "permit": "the token of an agent that may only ask",
}
_WORDS = {
    400: "Something in the request is wrong; `about` has the field, where it is one.",
    401: "It needs a token.",
    403: "It takes another kind of token.",
    404: "There is no such thing, or none that you may see.",
    408: "The body did not come in its time.",
    409: "Not possible as things are; `remedy` says what to do first.",
    410: "It was there once, and is gone.",
    413: "The body is too large.",
    422: "The key was used for another request.",
    502: "The CLI answered what can't be understood.",
    503: "The server ends, or its log can't be written just now.",
    504: "The CLI did not answer in its time.",
    507: "The disk is full.",
}
#: What asks the CLI that runs.
_ASKS_THE_CLI = ("interrupt", "set_mode", "set_model", "rewind", "context", "mcp", "info")


#: The schema of each type.
_Known: TypeAlias = dict[Any, dict[str, Any]]


class _Route(Struct):
    path: str
    method: str
    handler: HTTPRouteHandler
    #: What Litestar says of it.
    operation: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.handler.fn.__name__)

    @property
    def body(self) -> Any:
        field = self.handler.parsed_data_field
        return field.annotation if field else None

    @property
    def answer(self) -> Any:
        """What is in the answer; None where that is no JSON."""
        annotation = self.handler.parsed_return_field.annotation
        inner = get_args(annotation)[0] if get_origin(annotation) is Response else annotation
        return None if inner in (bytes, None, type(None)) else inner


def description_route(handlers: Sequence[ControllerRouterHandler]) -> HTTPRouteHandler:
    """The route that gives it, for these; it is made when somebody asks."""
    made: list[bytes] = []

    @get("/openapi.json", opt=takes("person", "reader"), include_in_schema=False)
    async def openapi() -> Response[bytes]:
        """The description of the API (OpenAPI 3.1)."""
        if not made:
            # It takes some tenths of a second.
            made.append(msgspec.json.encode(await asyncio.to_thread(describe, handlers)))
        return Response(made[0], media_type=JSON)

    return openapi


def describe(handlers: Sequence[ControllerRouterHandler]) -> dict[str, Any]:
    routes = list(_routes(handlers))
    types = [kind for route in routes for kind in (route.body, route.answer) if kind is not None]
    parts = dict.fromkeys(part for kind in (ProblemDetails, *types) for part in _parts(kind))
    schemas, components = msgspec.json.schema_components(parts, ref_template=REF)
    known = dict(zip(parts, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, known)
    told: dict[str, Any] = _renamed(_whole(paths, components), _short(components))
    return told


def _whole(paths: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
    return {
        "openapi": "3.1.0",
        "info": {"title": "Bridle", "version": __version__, "description": DESCRIPTION},
        "servers": [{"url": "/"}],
        "tags": [{"name": name, "description": words} for name, words in TAGS.items()],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "cookie": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": "bridle_PORT",
                    "description": "Of a browser that is logged in; PORT is the server's.",
                },
            },
        },
    }


def _routes(handlers: Sequence[ControllerRouterHandler]) -> Iterator[_Route]:
    """Each with what Litestar itself finds out: the parameters above all."""
    app = Litestar(
        handlers,
        dependencies={"house": Provide(lambda: None, sync_to_thread=False)},
        openapi_config=OpenAPIConfig("Bridle", "1", render_plugins=[JsonRenderPlugin()]),
        logging_config=None,
    )
    paths: dict[str, Any] = msgspec.to_builtins(app.openapi_schema.to_schema())["paths"]
    for route in app.routes:
        if not isinstance(route, HTTPRoute) or route.path_format not in paths:
            continue
        for method, (handler, _) in route.route_handler_map.items():
            operation = paths[route.path_format].get(method.lower())
            if operation is not None and handler.resolve_include_in_schema():
                yield _Route(route.path_format, method, handler, operation)


def _parts(kind: Any) -> tuple[Any, ...]:
    """Of a union, what it is of: two Structs that are not told apart by a tag may be in it."""
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _schema(kind: Any, known: _Known) -> dict[str, Any]:
    parts = [known[part] for part in _parts(kind)]
    return parts[0] if len(parts) == 1 else {"anyOf": parts}


def _example(name: str, of: Literal["body", "answer"]) -> dict[str, Any]:
    from . import examples  # seldom needed, and a command is to be quick

    found = (examples.BODIES if of == "body" else examples.ANSWERS).get(name)
    return {} if found is None else {"example": msgspec.json.decode(msgspec.json.encode(found))}


def _renamed(value: Any, names: dict[str, str]) -> Any:
    """With shorter names for the shapes that are referred to."""
    if isinstance(value, dict):
        return {names.get(key, key): _renamed(one, names) for key, one in value.items()}
    if isinstance(value, list):
        return [_renamed(one, names) for one in value]
    return names.get(value, value) if isinstance(value, str) else value


def _short(components: Iterable[str]) -> dict[str, str]:
    """Where two have one name, msgspec tells them apart by their modules, we by what they are."""
    found: dict[str, str] = {}
    for name in components:
        for module, suffix in _SUFFIXES.items():
            if name.startswith(module):
                found[name] = name.removeprefix(module) + suffix
    refs = {REF.format(name=name): REF.format(name=short) for name, short in found.items()}
    return found | refs


_SUFFIXES = {
    "bridle.approvals.model.": "",
    "bridle.server.shapes.decisions.": "Given",
    "bridle.views.entries.": "Entry",
}


def _operation(route: _Route, known: _Known) -> dict[str, Any]:
    words = inspect.getdoc(route.handler.fn) or ""
    summary = " ".join(words.split("\n\n")[0].split())
    roles = roles_of(route.handler)
    operation: dict[str, Any] = {
        "operationId": route.name,
        "tags": [_tag(route.path)],
        "summary": summary,
        "description": f"{words}\n\n{_takes(roles)}",
        "parameters": [_parameter(one) for one in route.operation.get("parameters", ())],
        "responses": {**_answers(route, known), **_errors(route, known, roles)},
        "security": [{"bearer": []}, {"cookie": []}] if roles else [],
    }
    if route.body is not None:
        operation["requestBody"] = _body(route, known)
    return operation


def _tag(path: str) -> str:
    first = path.removeprefix("/api/v1/").split("/")[0]
    return first if first in TAGS else "server"


def _takes(roles: tuple[Role, ...]) -> str:
    if not roles:
        return "Takes no token."
    return f"Takes {' or '.join(_ROLES[role] for role in roles)}."


def _parameter(told: dict[str, Any]) -> dict[str, Any]:
    """Without what is so by default, and without a null: a parameter that is none is left out."""
    schema = dict(told["schema"])
    schema.pop("description", None)
    options = [one for one in schema.pop("oneOf", ()) if one != {"type": "null"}]
    if len(options) == 1:
        schema = {**options[0], **schema}
    elif options:
        schema["oneOf"] = options
    found = {"name": told["name"], "in": told["in"], "required": told.get("required", False)}
    words = {"description": told["description"]} if told.get("description") else {}
    return {**found, **words, "schema": schema}


def _body(route: _Route, known: _Known) -> dict[str, Any]:
    content: dict[str, Any] = {"schema": _schema(route.body, known), **_example(route.name, "body")}
    return {"content": {JSON: content}, "required": type(None) not in get_args(route.body)}


def _answers(route: _Route, known: _Known) -> dict[str, Any]:
    status = str(route.handler.status_code)
    words = "Nothing more is to be told." if status == "204" else "As it was asked."
    content: dict[str, Any] = {}
    if route.answer is not None:
        example = _example(route.name, "answer")
        content[JSON] = {"schema": _schema(route.answer, known), **example}
    elif status != "204":
        content[str(route.handler.media_type)] = {"schema": {"type": "string"}}
    if any(one["name"] == "Last-Event-ID" for one in route.operation.get("parameters", ())):
        content[EVENT_STREAM] = {"schema": {"type": "string", "description": _STREAM}}
    return {status: {"description": words, **({"content": content} if content else {})}}


_STREAM = (
    "Server-sent events: `id` is where to resume (what is live only has none), `event` what it is,"
    " `data` JSON. Lines with a colon at their beginning are signs of life. docs/api.md has more."
)


def _errors(route: _Route, known: _Known, roles: tuple[Role, ...]) -> dict[str, Any]:
    statuses = {400, 503}
    names = {one["name"] for one in route.operation.get("parameters", ())}
    if roles:
        statuses |= {401, 403}
    if "{" in route.path or names & {"session", "parent", "folder"}:
        statuses |= {404}
    if route.method != "GET" or route.name in _ASKS_THE_CLI:
        statuses |= {404, 409, 507}
    if route.name in _ASKS_THE_CLI:
        statuses |= {502, 504}
    if route.body is not None:
        statuses |= {408, 413}
    if "Idempotency-Key" in names:
        statuses |= {410, 422}
    if route.name == "event":
        statuses |= {410}
    problem = {MEDIA_TYPE: {"schema": known[ProblemDetails]}}
    return {
        str(status): {"description": _WORDS[status], "content": problem}
        for status in sorted(statuses)
    }
