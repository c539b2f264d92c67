"""Hooks by decorator: a function for an event of the CLI, with the event's own input type.

    hooks = Hooks()

    @hooks.on(PreToolUse, matcher="Bash")
    def guard(event: PreToolUse) -> HookOutput:
        return pre_tool_use("deny", "not today")

Owns the registration and what a function may answer; calling it is the responder's work.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeAlias, TypeVar, cast, get_args

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from ..errors import InvalidLaunch
from ..protocol.capabilities import Capabilities
from ..protocol.control import HookCallback
from ..protocol.hook_outputs import AsyncHookOutput, HookOutput, SpecificOutput
from ..protocol.hooks import (
    MAX_TIMEOUT_SECONDS,
    PRE_TOOL_USE,
    HookEvent,
    HookInput,
    HookMatcher,
    KnownHookInput,
    PostToolUse,
    PostToolUseFailure,
    PreToolUse,
)
from ..protocol.unknown import Unknown

#: What a hook may answer. None says nothing; an output of one event is put into a `HookOutput`.
HookAnswer: TypeAlias = HookOutput | AsyncHookOutput | SpecificOutput | None
OnFailure: TypeAlias = Literal["continue", "block"]

#: The id under which the CLI calls the gate. Frozen: an agent that an older Bridle has started
#: calls it by this name.
GATE_ID = "bridle-gate"
#: The same for what shows which input a tool has run with.
RAN_ID, FAILED_ID = "bridle-gate-ran", "bridle-gate-failed"
GATE_IDS = frozenset((GATE_ID, RAN_ID, FAILED_ID))

#: How long a CLI waits for a hook that was registered without a timeout, and how much earlier we
#: give up.
DEFAULT_SECONDS, MARGIN_SECONDS = 600.0, 5.0

_H = TypeVar("_H", bound=HookInput)
Hook: TypeAlias = Callable[[_H], HookAnswer | Awaitable[HookAnswer]]

_SPECIFIC: tuple[type, ...] = get_args(SpecificOutput)
_EVENTS: tuple[type, ...] = get_args(KnownHookInput)


class _Registered(Struct):
    event: HookEvent
    kind: type[HookInput]
    call: Callable[[Any], Any]
    matcher: str | UnsetType
    timeout: float | UnsetType
    on_failure: OnFailure | UnsetType


class Hooks:
    """The hooks of a session, in the order in which they were made.

    The order gives each its id, so the same program has the same ids when it starts again.
    """

    def __init__(self) -> None:
        self._registered: dict[str, _Registered] = {}

    def __len__(self) -> int:
        return len(self._registered)

    def on(
        self,
        event: type[_H],
        *,
        matcher: str | UnsetType = UNSET,
        timeout: float | UnsetType = UNSET,
        on_failure: OnFailure | UnsetType = UNSET,
    ) -> Callable[[Hook[_H]], Hook[_H]]:
        """Call the function at this event; `matcher` says for which tools (a name, or a regex).

        `on_failure="block"` has new CLIs refuse the tool where the hook can't be reached.
        """
        if event not in _EVENTS:
            raise InvalidLaunch(f"{event!r} is no hook event: use a class of bridle.protocol.hooks")
        name: HookEvent = str(event.__struct_config__.tag)  # type: ignore[assignment]

        def register(call: Hook[_H]) -> Hook[_H]:
            count = sum(one.event == name for one in self._registered.values())
            hook = _Registered(name, event, call, matcher, timeout, on_failure)
            self._registered[f"bridle-{name}-{count + 1}"] = hook
            return call

        return register

    def behind(
        self,
        gate: Callable[[PreToolUse], Any],
        ran: Callable[[Any], Any],
        changed: Callable[[PreToolUse, object], object],
    ) -> Hooks:
        """These hooks, and before them those of a gate: `gate` sees every tool call and may take
        its time, `ran` sees what has run.

        What one of these answers to a tool call passes through `changed`.
        """
        both = Hooks()
        seconds = float(MAX_TIMEOUT_SECONDS)
        both._registered = {
            GATE_ID: _Registered("PreToolUse", PreToolUse, gate, UNSET, seconds, "block"),
            RAN_ID: _Registered("PostToolUse", PostToolUse, ran, UNSET, UNSET, UNSET),
            FAILED_ID: _Registered(
                "PostToolUseFailure", PostToolUseFailure, ran, UNSET, UNSET, UNSET
            ),
        }
        for id_, hook in self._registered.items():
            if hook.event == PRE_TOOL_USE:
                hook = replace(hook, call=_seen_by(changed, hook.call))  # noqa: PLW2901
            both._registered[id_] = hook
        return both

    def matchers(self, capabilities: Capabilities) -> dict[HookEvent, list[HookMatcher]] | None:
        """As `initialize` registers them with this CLI."""
        found: dict[HookEvent, list[HookMatcher]] = {}
        blocks = capabilities.does("hooks may block on failure") == "yes"
        for id_, hook in self._registered.items():
            on_failure = hook.on_failure if blocks else UNSET
            # Without a timeout 2.0.75 waits for 60 s only, and then runs the tool.
            timeout = DEFAULT_SECONDS if isinstance(hook.timeout, UnsetType) else hook.timeout
            matcher = HookMatcher([id_], hook.matcher, timeout, on_failure)
            found.setdefault(hook.event, []).append(matcher)
        return found or None

    def call(self, request: HookCallback) -> Any:
        """What the function gives: an answer, or something to wait for. Raises what it raises."""
        hook, told = self._registered.get(request.callback_id), request.input
        if hook is None:
            raise LookupError(f"no hook is registered as {request.callback_id!r}")
        if not isinstance(told, hook.kind):
            reason = told.reason if isinstance(told, Unknown) else type(told).__name__
            raise TypeError(f"a {hook.event} hook was told what it can't read: {reason}")
        return hook.call(told)

    def limit(self, callback_id: str) -> float | None:
        """How long to wait for this hook: a little less than the CLI does.

        Old CLIs go on as if there were no hook when their patience ends, and then run the tool.
        """
        hook = self._registered[callback_id]
        if hook.event != PRE_TOOL_USE:
            return None
        patience = DEFAULT_SECONDS if isinstance(hook.timeout, UnsetType) else hook.timeout
        return patience - min(MARGIN_SECONDS, patience / 5)


def _seen_by(
    changed: Callable[[PreToolUse, object], object], call: Callable[[Any], Any]
) -> Callable[[PreToolUse], Any]:
    async def later(event: PreToolUse, answer: Awaitable[object]) -> object:
        return changed(event, await answer)

    def seen(event: PreToolUse) -> object:
        answer = call(event)
        return later(event, answer) if inspect.isawaitable(answer) else changed(event, answer)

    return seen


def hook_output(answer: object) -> HookOutput | AsyncHookOutput:
    """An answer as the CLI takes it; what is none of ours is refused."""
    if answer is None:
        return HookOutput()
    if isinstance(answer, HookOutput | AsyncHookOutput):
        return answer
    if isinstance(answer, _SPECIFIC):
        return HookOutput(hook_specific_output=cast(SpecificOutput, answer))
    raise TypeError(f"a hook answered a {type(answer).__name__}, not a HookOutput or None")
