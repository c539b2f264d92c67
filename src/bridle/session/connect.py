"""The ways in: `connect` for a session, `run` and `run_sync` for one prompt."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import SessionClosed
from ..policy.force import InForce
from ..process.child import ChildProcess
from ..process.spec import LaunchOptions, LaunchSpec
from ..process.transport import StopLimits, Transport
from ..protocol.blocks import KnownBlock
from ..protocol.messages import Message, Result
from ..protocol.requests import Agent
from ..protocol.unknown import Unknown
from .commit import Commit, Seams, at_once
from .desk import Approver, Desk, PlainDesk
from .folder import Survey
from .gate import Gate
from .hooks import Hooks
from .mailbox import UNREAD_BYTES
from .making import handlers_of, handshake_seconds, hello, launched
from .options import REQUEST_SECONDS, SessionOptions
from .policies import PolicyLike, Ungated, fit, in_force
from .responder import DialogHandler, Elicitor, Handlers
from .session import Session
from .tools import Tools, ToolServers
from .wirelog import LineLog, WireLog

if TYPE_CHECKING:
    from typing import Unpack

_log = logging.getLogger("bridle.session")


class ConnectOptions(LaunchOptions, total=False):
    """The keywords of `connect`, for `run`."""

    approver: Approver | Desk | None
    policy: PolicyLike | None
    trust: Survey | None
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
            self._transport, self._handlers, self._options, Seams(self._commit)
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
    approver: Approver | Desk | None = None,
    policy: PolicyLike | None = None,
    trust: Survey | None = None,
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

    The policy judges every tool call; what it leaves open the approver is asked, else it is denied.
    Keywords not named here are fields of `LaunchSpec`: docs/sessions.md.
    """
    _check_handlers(approver, hooks, elicit, dialog, on_stderr)
    gate, spec, withheld = _launch(launch, policy, approver, trust, transport)
    options = SessionOptions(
        initialize=hello(servers := ToolServers(tools), agents),
        request_seconds=request_timeout,
        handshake_seconds=handshake_timeout or handshake_seconds(spec),
        stop=stop_limits or StopLimits(),
        unread_bytes=unread_limit,
        shows_replays=spec.replay_user_messages,
        on_stderr=on_stderr,
        withheld=withheld,
    )
    handlers = handlers_of(approver, hooks or Hooks(), servers, elicit, dialog, gate)
    # Made here, so that a mistake in the options is told where it was made.
    child = transport or ChildProcess(spec, is_gated=bool(gate))
    return Connecting(child, handlers, options, log, commit)


def _launch(
    options: Mapping[str, Any],
    policy: PolicyLike | None,
    approver: Approver | Desk | None,
    trust: Survey | None,
    transport: Transport | None,
) -> tuple[Gate | None, LaunchSpec, Survey | None]:
    spec = _spec(options, is_launched=transport is None)
    gate = _gate(policy, spec, approver)
    return gate, *launched(spec, gate, trust)


def _gate(
    policy: PolicyLike | None, spec: LaunchSpec, approver: Approver | Desk | None
) -> Gate | None:
    if isinstance(policy, Ungated):
        return None
    if policy is None and isinstance(approver, Desk):
        raise TypeError("a desk has a policy of its own: give that one as `policy`, too")
    force = policy if isinstance(policy, InForce) else in_force(policy or "ask", spec)
    if isinstance(policy, InForce):
        fit(policy, spec)
    return Gate(force, approver if isinstance(approver, Desk) else PlainDesk(approver))


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
    asked = None if isinstance(approver, Desk) else approver
    for given in (asked, *functions):
        if given is not None and not callable(given):
            raise TypeError(f"{given!r} is no function, and must be one to be asked")
    if not isinstance(hooks, Hooks | None):
        raise TypeError(f"hooks is a bridle.Hooks, not {hooks!r}")


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
