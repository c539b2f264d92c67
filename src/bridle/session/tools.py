"""Python functions as tools of the agent: an MCP server inside of this process.

Owns the way from a function to a tool (name, description, schema, arguments, result) and the few
methods of MCP that a CLI calls. No port, no token: the traffic comes over the control protocol.
"""

from __future__ import annotations

import functools
import inspect
import re
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, overload, runtime_checkable

import msgspec
from msgspec import Struct

from ..errors import InvalidTool, words_of
from ..protocol.blocks import Base64Source, ImageBlock, TextBlock
from .threads import in_thread

#: The name under which tools are served when none is given: `mcp__tools__NAME` for the model.
DEFAULT_SERVER = "tools"
PROTOCOL_VERSION = "2025-06-18"
METHOD_NOT_FOUND, INVALID_PARAMS = -32601, -32602

Json: TypeAlias = dict[str, Any]


class ToolCall(Struct, frozen=True):
    """Which call it is: by the id of its request, which is one of its launch, and by the model's
    own for it, where the CLI tells that."""

    request_id: str = ""
    tool_use_id: str = ""


_ANY = ToolCall()


@runtime_checkable
class Offered(Protocol):
    """A tool, however it is made. What is repeatable may be called again with the same `which`
    after a restart, and does then what is not done yet."""

    name: str
    is_repeatable: bool

    def listed(self) -> Json:
        """Its entry in tools/list."""

    async def call(self, arguments: Json, which: ToolCall) -> Json:
        """Its result for tools/call. Raises nothing."""


OneTool: TypeAlias = Callable[..., Any] | Offered
Tools: TypeAlias = Sequence[OneTool] | Mapping[str, Sequence[OneTool]]


class Tool:
    """One function as the model sees it."""

    is_repeatable = False

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        read_only: bool = False,
    ) -> None:
        self.function = function
        self.name: str = name or str(getattr(function, "__name__", ""))
        self.description = description or inspect.getdoc(function) or ""
        self.read_only = read_only
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", self.name):
            raise InvalidTool(
                f"{self.name or function!r} can't be the name of a tool: give it one of letters, "
                "digits, _ and -, with @bridle.tool(name=…)"
            )
        self._arguments = _arguments(function, self.name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def listed(self) -> Json:
        """Its entry in tools/list."""
        schema = msgspec.json.schema(self._arguments)
        defined = schema.get("$defs", {})
        own = defined.pop(self._arguments.__name__)
        entry = {"name": self.name, "description": self.description}
        hints = {"annotations": {"readOnlyHint": True}} if self.read_only else {}
        return {**entry, "inputSchema": {**own, **({"$defs": defined} if defined else {})}, **hints}

    async def call(self, arguments: Json, which: ToolCall = _ANY) -> Json:  # noqa: ARG002
        """Its result for tools/call. Whatever goes wrong is told to the model, and ends nothing."""
        try:
            given = msgspec.convert(arguments, self._arguments)
            named = {field: getattr(given, field) for field in given.__struct_fields__}
            if inspect.iscoroutinefunction(self.function):
                value = await self.function(**named)
            else:
                value = await in_thread(functools.partial(self.function, **named))
            return {"content": _content(value), "isError": False}
        except Exception as error:  # noqa: BLE001 - it is the model's to deal with
            return {"content": [{"type": "text", "text": words_of(error)}], "isError": True}


@overload
def tool(function: Callable[..., Any]) -> Tool: ...
@overload
def tool(
    *, name: str | None = None, description: str | None = None, read_only: bool = False
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    description: str | None = None,
    read_only: bool = False,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Say more about a function that is offered as a tool; a plain function needs no decorator.

    Tools that are `read_only` may be called by the model in parallel.
    """

    def made(function: Callable[..., Any]) -> Tool:
        return Tool(function, name=name, description=description, read_only=read_only)

    return made(function) if function else made


class ToolServers:
    """The tools of a session, by the server that the CLI knows them under."""

    def __init__(self, tools: Tools) -> None:
        if callable(tools):
            raise InvalidTool(f"tools is a list: give [{getattr(tools, '__name__', 'function')}]")
        groups = tools if isinstance(tools, Mapping) else {DEFAULT_SERVER: tools} if tools else {}
        self._servers = {name: _by_name(name, group) for name, group in groups.items()}

    @property
    def names(self) -> list[str]:
        return list(self._servers)

    def is_repeatable(self, server: str, message: Json) -> bool:
        """Whether it may be handled again after a restart, when nobody knows how far it came."""
        if message.get("method") != "tools/call":
            return True
        params = message.get("params")
        name = params.get("name") if isinstance(params, dict) else None
        called = self._servers.get(server, {}).get(str(name))
        return called is not None and called.is_repeatable

    async def handle(self, server: str, message: Json, request_id: str = "") -> Json:
        """The JSON-RPC answer to a JSON-RPC message."""
        reply = {"jsonrpc": "2.0", "id": message.get("id", 0)}
        tools = self._servers.get(server)
        if tools is None:
            return {**reply, "error": _error(METHOD_NOT_FOUND, f"there is no server {server!r}")}
        params = message.get("params") or {}
        match message.get("method"):
            case "initialize":
                result = _hello(server, params)
            case "tools/list":
                result = {"tools": [one.listed() for one in tools.values()]}
            case "tools/call":
                called = tools.get(str(params.get("name")))
                if called is None:
                    words = f"there is no tool {params.get('name')!r}"
                    return {**reply, "error": _error(INVALID_PARAMS, words)}
                which = ToolCall(request_id, _tool_use(params))
                result = await called.call(params.get("arguments") or {}, which)
            case "ping":
                result = {}
            case str(method) if method.startswith("notifications/"):
                result = {}
            case method:
                return {**reply, "error": _error(METHOD_NOT_FOUND, f"no method {method!r}")}
        return {**reply, "result": result}


def _tool_use(params: Json) -> str:
    meta = params.get("_meta")
    return str(meta.get("claudecode/toolUseId", "")) if isinstance(meta, dict) else ""


def _by_name(server: str, group: Sequence[OneTool]) -> dict[str, Offered]:
    tools: dict[str, Offered] = {}
    for given in group:
        one = given if isinstance(given, Offered) else Tool(given)
        if one.name in tools:
            raise InvalidTool(f"two tools of {server!r} are named {one.name!r}")
        tools[one.name] = one
    return tools


def _arguments(function: Callable[..., Any], name: str) -> type[Struct]:
    """The function's parameters as a struct: it has the schema, and checks what the model gives."""
    try:
        hints = typing.get_type_hints(function, include_extras=True)
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError, NameError) as error:
        raise InvalidTool(f"the tool {name}: its signature can't be read: {error}") from error
    fields: list[Any] = []
    for parameter in parameters:
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise InvalidTool(f"the tool {name}: the model can't give {parameter}")
        kind = hints.get(parameter.name, Any)
        default = () if parameter.default is parameter.empty else (_default(parameter.default),)
        fields.append((parameter.name, kind, *default))
    try:
        made = msgspec.defstruct(
            f"{name}_arguments", fields, kw_only=True, forbid_unknown_fields=True
        )
        msgspec.json.schema(made)
    except (TypeError, ValueError) as error:
        raise InvalidTool(f"the tool {name}: {error}") from error
    return made


def _default(value: Any) -> Any:
    # msgspec copies only empty ones by itself.
    if isinstance(value, list | dict | set):
        return msgspec.field(default_factory=lambda: type(value)(value))
    return value


def _content(value: Any) -> list[Any]:
    """What a function gave back, as content blocks of MCP."""
    match value:
        case None:
            return [{"type": "text", "text": "done"}]
        case str():
            return [{"type": "text", "text": value}]
        case TextBlock():
            return [{"type": "text", "text": value.text}]
        case ImageBlock(source=Base64Source() as source):
            return [{"type": "image", "data": source.data, "mimeType": source.media_type}]
        case list() if value and all(isinstance(one, TextBlock | ImageBlock) for one in value):
            return [part for one in value for part in _content(one)]
        case _:
            return [{"type": "text", "text": msgspec.json.encode(value).decode()}]


def _hello(server: str, params: Json) -> Json:
    return {
        "protocolVersion": params.get("protocolVersion", PROTOCOL_VERSION),
        "capabilities": {"tools": {}},
        "serverInfo": {"name": server, "version": "1.0.0"},
    }


def _error(code: int, message: str) -> Json:
    return {"code": code, "message": message}
