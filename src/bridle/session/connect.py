"""The ways in: `connect` for a session, `run` and `run_sync` for one prompt."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from ..errors import InvalidLaunch, SessionClosed
from ..process.child import ChildProcess
from ..process.spec import LaunchOptions, LaunchSpec
from ..process.transport import StopLimits, Transport
from ..protocol.blocks import KnownBlock
from ..protocol.messages import Message, Result
from ..protocol.requests import Agent, Initialize
from ..protocol.unknown import Unknown
from .commit import Commit, at_once
from .hooks import Hooks
from .mailbox import UNREAD_BYTES
from .responder import Approver, DialogHandler, Elicitor, Handlers
from .session import REQUEST_SECONDS, Session, SessionOptions
from .tools import Tools, ToolServers
from .wirelog import LineLog, WireLog

if TYPE_CHECKING:
    from typing import Unpack

HANDSHAKE_VARIABLE = "CLAUDE_CODE_STREAM_CLOSE_TIMEOUT"


class ConnectOptions(LaunchOptions, total=False):
    """The keywords of `connect`, for `run`."""

    approver: Approver | None
    hooks: Hooks | None
    tools: Tools
    elicit: Elicitor | None
    dialog: DialogHandler | None
    agents: Mapping[str, Agent] | None
    log: str | os.PathLike[str] | LineLog | None
    on_stderr: Callable[[str], None] | None
    request_timeout: float
    handshake_timeout: float | None
    stop_limits: StopLimits | None
    unread_limit: int
    commit: Commit
    transport: Transport | None


class Connecting:
    """A session that is started by `async with` and stopped at its end."""

    def __init__(
        self,
        transport: Transport,
        handlers: Handlers,
        options: SessionOptions,
        log: str | os.PathLike[str] | LineLog | None,
        commit: Commit,
    ) -> None:
        self._transport = transport
        self._handlers = handlers
        self._options = options
        self._log = log
        self._commit = commit
        self._session: Session | None = None

    async def __aenter__(self) -> Session:
        if self._session:
            raise SessionClosed("a session can be entered once: call connect() again")
        if self._log is not None:
            self._options.log = WireLog(self._log)
        session = self._session = Session(
            self._transport, self._handlers, self._options, self._commit
        )
        try:
            await session.start()
        except BaseException:
            await session.stop()
            raise
        return session

    async def __aexit__(self, *_: object) -> None:
        if self._session:
            await self._session.stop()


def connect(
    *,
    approver: Approver | None = None,
    hooks: Hooks | None = None,
    tools: Tools = (),
    elicit: Elicitor | None = None,
    dialog: DialogHandler | None = None,
    agents: Mapping[str, Agent] | None = None,
    log: str | os.PathLike[str] | LineLog | None = None,
    on_stderr: Callable[[str], None] | None = None,
    request_timeout: float = REQUEST_SECONDS,
    handshake_timeout: float | None = None,
    stop_limits: StopLimits | None = None,
    unread_limit: int = UNREAD_BYTES,
    commit: Commit = at_once,
    transport: Transport | None = None,
    **launch: Unpack[LaunchOptions],
) -> Connecting:
    """Start an agent: `async with bridle.connect(cwd="app", approver=ask_me) as session`.

    Without an approver every tool that the CLI asks about is denied. The keywords that are not
    named here are the fields of `LaunchSpec`; docs/sessions.md explains them all.
    """
    _check_handlers(approver, hooks, elicit, dialog, on_stderr)
    spec = _spec(launch, is_launched=transport is None)
    servers = ToolServers(tools)
    options = SessionOptions(
        initialize=_hello(servers, agents),
        request_seconds=request_timeout,
        handshake_seconds=handshake_timeout or _handshake_seconds(spec),
        stop=stop_limits or StopLimits(),
        unread_bytes=unread_limit,
        shows_replays=spec.replay_user_messages,
        on_stderr=on_stderr,
    )
    handlers = Handlers(approver, hooks or Hooks(), servers, elicit, dialog)
    # Made here, so that a mistake in the options is told where it was made.
    return Connecting(transport or ChildProcess(spec), handlers, options, log, commit)


async def run(
    prompt: str | Sequence[KnownBlock | str],
    *,
    on_message: Callable[[Message | Unknown], None] | None = None,
    **options: Unpack[ConnectOptions],
) -> Result:
    """One prompt to a new agent, and the result; `options` are those of `connect`."""
    async with connect(**options) as session:
        turn = await session.send(prompt)
        if on_message is None:
            turn.discard()
        else:
            async for message in turn:
                on_message(message)
        return await turn.result()


def run_sync(
    prompt: str | Sequence[KnownBlock | str],
    *,
    on_message: Callable[[Message | Unknown], None] | None = None,
    **options: Unpack[ConnectOptions],
) -> Result:
    """`run` for scripts that have no event loop."""
    return asyncio.run(run(prompt, on_message=on_message, **options))


def _check_handlers(approver: object, hooks: object, *functions: object) -> None:
    """What would only fail when it is needed is told now."""
    for given in (approver, *functions):
        if given is not None and not callable(given):
            raise TypeError(f"{given!r} is no function, and must be one to be asked")
    if not isinstance(hooks, Hooks | None):
        raise TypeError(f"hooks is a bridle.Hooks, not {hooks!r}")


def _hello(servers: ToolServers, agents: Mapping[str, Agent] | None) -> Initialize:
    return Initialize(
        agents=dict(agents) if agents else UNSET, sdk_mcp_servers=servers.names or UNSET
    )


def _spec(options: Mapping[str, Any], *, is_launched: bool) -> LaunchSpec:
    useless = [] if is_launched else sorted(options.keys() - {"replay_user_messages"})
    if useless:
        raise TypeError(f"a transport is not launched: {', '.join(useless)} can't be given")
    unknown = sorted(set(options) - set(LaunchSpec.__struct_fields__))
    if unknown:
        import difflib

        near = difflib.get_close_matches(unknown[0], LaunchSpec.__struct_fields__, 1)
        hint = f": did you mean {near[0]!r}?" if near else ""
        raise TypeError(f"connect() has no option {unknown[0]!r}{hint}")
    return LaunchSpec(**options)


def _handshake_seconds(spec: LaunchSpec) -> float:
    """The CLI's own variable, in milliseconds, holds for us too."""
    text = spec.env.get(HANDSHAKE_VARIABLE) or os.environ.get(HANDSHAKE_VARIABLE)
    try:
        return float(text) / 1000 if text else REQUEST_SECONDS
    except ValueError as error:
        raise InvalidLaunch(f"{HANDSHAKE_VARIABLE} is not a number: {text!r}") from error
