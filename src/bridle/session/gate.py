"""The gate: every tool call is judged before it runs, also those that the CLI would not ask about.

Two doors lead here: a PreToolUse hook, which the CLI calls for every tool, and its own question
(`can_use_tool`). New CLIs always ask when the hook says so, and the wait is in the question. Old
ones may run the tool instead, so there the wait is in the hook. Whatever goes wrong raises, and who
called denies: a hook is never answered with an error.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, TypeVar

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from ..policy.force import InForce
from ..policy.presets import Preset
from ..policy.suggest import text_of
from ..policy.tools import PLAN, QUESTION
from ..policy.verdicts import Allowed, Asked, Call, Denied
from ..protocol.blocks import ToolResultBlock
from ..protocol.capabilities import Capabilities
from ..protocol.control import Answer, CanUseTool, HookCallback, InboundRequest
from ..protocol.hook_outputs import HookOutput, PreToolUseOutput
from ..protocol.hooks import PreToolUse
from ..protocol.messages import User
from ..protocol.permissions import (
    AddDirectories,
    AddRules,
    Allow,
    Decision,
    Deny,
    PermissionUpdate,
    RemoveDirectories,
    SetMode,
)
from .desk import Desk, unless_asked
from .hooks import GATE_ID
from .plans import Plans
from .recall import hook_decision, question_decision

#: More calls than this are not under way in one agent.
MAX_CALLS = 10_000

#: All versions ask about these two themselves, whatever a hook says; so the wait is there.
ALWAYS_ASKED = (PLAN, QUESTION)

#: Never changed: what is in it is echoed from the request.
ALLOW: Decision = Allow()

_T = TypeVar("_T")
HookReply: TypeAlias = HookOutput | Awaitable[HookOutput]
Reply: TypeAlias = Decision | Awaitable[Decision]

_log = logging.getLogger("bridle.session")


class _Seen(Struct):
    """A call that the hook has seen."""

    call: Call
    is_allowed: bool = False
    #: What was decided in the hook; the CLI may ask again all the same.
    decision: Decision | None = None
    was_asked: bool = False

    @property
    def has_run(self) -> bool:
        """Whether it has, now that there is a result."""
        return isinstance(self.decision, Allow) or (self.decision is None and self.is_allowed)

    def is_about(self, request: CanUseTool) -> bool:
        """Whether the decision is about this very request, and not about one with its id alone."""
        changed = None if isinstance(self.decision, Deny | None) else self.decision.updated_input
        same_input = request.input in (self.call.input, changed)
        return request.tool_name == self.call.tool and same_input


class SavedGate(Struct):
    """What people have said since the start, beside rules: how to go on, and where."""

    preset: Preset
    folders: tuple[str, ...]
    under: str = ""


class Gate:
    """Judges one agent's calls, and asks its desk about the rest."""

    def __init__(self, policy: InForce, desk: Desk) -> None:
        self.policy = policy
        self._desk = desk
        self._plans = Plans(policy.ground)
        self._seen: dict[str, _Seen] = {}
        #: Whether the wait is in the hook: until we know better, it is.
        self._waits_in_hook = True
        self._has_ended = False
        #: It is told what was: nothing that waits now ends by that.
        self.is_in_past = False
        self._end_turn: Callable[[], None] = lambda: None
        self._confirm_mode: Callable[[str | None], None] = lambda _: None

    def meet(
        self,
        capabilities: Capabilities,
        end_turn: Callable[[], None],
        confirm_mode: Callable[[str | None], None],
    ) -> None:
        """The CLI is known now; so is how to interrupt it, and whom to tell of its mode."""
        self._waits_in_hook = capabilities.does("hook ask is always asked") != "yes"
        self._end_turn, self._confirm_mode = end_turn, confirm_mode

    # --- taking over

    @property
    def is_idle(self) -> bool:
        """Whether no call is under way."""
        return not self._seen

    def save(self) -> SavedGate:
        force = self.policy
        return SavedGate(force.policy.preset, force.ground.also, force.base.digest)

    def restore(self, saved: SavedGate) -> None:
        self.policy.go_on(saved.preset, saved.folders, saved.under)

    def recall(self, request: InboundRequest, line: bytes) -> None:
        """What an earlier controller answered: what it decided about a call holds on."""
        match request:
            case HookCallback(callback_id=id_, input=PreToolUse() as event) if id_ == GATE_ID:
                self._recall_hook(event, *hook_decision(line))
            case CanUseTool(tool_use_id=str(tool_use_id)):
                decision, call = question_decision(line), Call(request.tool_name, request.input)
                seen = self._seen.get(tool_use_id) or self._remember(request, _Seen(call))
                seen.decision = self._applied(decision) if isinstance(decision, Allow) else decision
                seen.was_asked = True
                self._tell(self._desk.delivered, tool_use_id)
                self._plans.chose(decision, request)

    def _recall_hook(self, event: PreToolUse, decided: str, reason: str) -> None:
        if not event.tool_use_id or not isinstance(event.tool_input, dict):
            return
        call = Call(event.tool_name, event.tool_input, event.permission_mode, event.cwd)
        self._plans.saw(call)
        seen = self._seen[event.tool_use_id] = _Seen(call, was_asked=True)
        # Whoever allowed it, a rule or a person: if the CLI asks all the same, that is looked up.
        seen.is_allowed = decided == "allow"
        if decided == "deny":
            seen.decision = Deny(reason)
        if decided != "ask":
            self._tell(self._desk.delivered, event.tool_use_id)

    # --- the two doors

    def hook(self, event: PreToolUse) -> HookReply:
        """The CLI is about to use a tool."""
        request = CanUseTool(
            tool_name=event.tool_name,
            input=_readable(event.tool_input),
            tool_use_id=event.tool_use_id,
            agent_id=event.agent_id,
        )
        self._confirm_mode(event.permission_mode)
        call = Call(event.tool_name, request.input, event.permission_mode, event.cwd)
        self._plans.saw(call)
        seen = self._remember(request, _Seen(call))
        verdict = unless_asked(self.policy.judge(call), request, self._desk)
        match verdict:
            case Allowed():
                seen.is_allowed = True
                return _after(self._desk.judged(request, verdict), _output("allow"))
            case Denied():
                seen.decision = self._denied(request, verdict)
                return _as_output(seen.decision)
        seen.was_asked = True
        if not self._waits_in_hook or event.tool_name in ALWAYS_ASKED:
            return _output("ask", verdict.because)
        given = self._desk.ask(request, replace(verdict, cwd=call.cwd))
        if inspect.isawaitable(given):
            return self._later_in_hook(request, seen, given)
        return _as_output(self._decided(request, seen, given))

    def question(self, request: CanUseTool) -> Reply:
        """The CLI asks by itself, or because the hook told it to."""
        seen = self._seen.get(request.tool_use_id or "")
        if seen is None or seen.call.tool != request.tool_name:
            seen = self._remember(request, _Seen(Call(request.tool_name, request.input)))
        call = Call(request.tool_name, request.input, seen.call.mode, seen.call.cwd)
        verdict = unless_asked(self.policy.judge(call), request, self._desk)
        if isinstance(verdict, Denied):
            return self._denied(request, verdict)
        if seen.decision is not None and seen.is_about(request):
            return seen.decision
        match verdict:
            case Allowed() if not seen.is_allowed or request.tool_name in ALWAYS_ASKED:
                return _after(self._desk.judged(request, verdict), ALLOW)
            case Allowed():
                # It knows something that the rules do not.
                reason = request.decision_reason or "the CLI asks, although the policy allows it"
                verdict = Asked(reason)
        seen.was_asked = True
        request = self._plans.shown(request)
        given = self._desk.ask(request, replace(verdict, cwd=call.cwd))
        if inspect.isawaitable(given):
            return self._later(request, seen, given)
        return self._decided(request, seen, given)

    def changed(self, event: PreToolUse, answer: object) -> object:
        """What another hook answers: an input that it changes is judged as well."""
        specific = getattr(answer, "hook_specific_output", answer)
        given = getattr(specific, "updated_input", UNSET)
        if not isinstance(specific, PreToolUseOutput) or isinstance(given, UnsetType):
            return answer
        verdict = self.policy.judge(
            Call(event.tool_name, _readable(given), event.permission_mode, event.cwd)
        )
        if isinstance(verdict, Allowed):
            return answer
        # Old CLIs might run it instead of asking.
        asks = isinstance(verdict, Asked) and not self._waits_in_hook
        reason = f"Bridle: a hook has changed the input: {verdict.because}"
        output = _output("ask" if asks else "deny", reason)
        if asks and isinstance(output.hook_specific_output, PreToolUseOutput):
            output.hook_specific_output.updated_input = given
        return output

    # --- waiting

    async def _later_in_hook(
        self, request: CanUseTool, seen: _Seen, given: Awaitable[Decision]
    ) -> HookOutput:
        return _as_output(self._decided(request, seen, await given))

    async def _later(
        self, request: CanUseTool, seen: _Seen, given: Awaitable[Decision]
    ) -> Decision:
        return self._decided(request, seen, await given)

    def _decided(self, request: CanUseTool, seen: _Seen, decision: Decision) -> Decision:
        if not isinstance(decision, Allow | Deny):
            raise TypeError(f"it answered {decision!r}, which is neither Allow(…) nor Deny(…)")
        decision = self._plans.delivered_by(decision, request, is_read=not self._waits_in_hook)
        decision = self._still_allowed(decision, request, seen)
        seen.call = Call(request.tool_name, request.input, seen.call.mode, seen.call.cwd)
        seen.decision = self._applied(decision) if isinstance(decision, Allow) else decision
        return seen.decision

    def _applied(self, decision: Allow) -> Allow:
        """What is to change from now on changes here. The CLI is told only of modes and folders of
        its session: a rule that it held would stop it from asking."""
        updates = decision.updated_permissions
        if isinstance(updates, UnsetType):
            return decision
        told: list[PermissionUpdate] = []
        for update in updates:
            match update:
                case SetMode(mode=mode):
                    self.policy.choose(mode)
                    told.append(replace(update, destination="session"))
                case AddDirectories(directories=directories):
                    self.policy.add_folders(directories)
                    told.append(replace(update, destination="session"))
                case RemoveDirectories():
                    told.append(replace(update, destination="session"))
                case AddRules(rules=rules, behavior=behavior):
                    for rule in rules:
                        self.policy.remember(text_of(rule), behavior)
                case _:
                    _log.warning("rules that the CLI holds are not changed: %r", update)
        return replace(decision, updated_permissions=told or UNSET)

    def _still_allowed(self, decision: Decision, request: CanUseTool, seen: _Seen) -> Decision:
        """A changed input is another call: what a rule denies stays denied."""
        given = UNSET if isinstance(decision, Deny) else decision.updated_input
        if not isinstance(given, dict) or given == request.input:
            return decision  # what is no input at all is refused where it is written
        verdict = self.policy.judge(Call(request.tool_name, given, seen.call.mode, seen.call.cwd))
        if isinstance(verdict, Denied):
            return Deny(f"Bridle denied this: with its changed input {verdict.because}")
        return decision

    def _denied(self, request: CanUseTool, verdict: Denied) -> Deny:
        """A no holds without a trail: that it can't be written down changes nothing."""
        try:
            self._desk.judged(request, verdict)
        except Exception:  # noqa: BLE001 - it is denied in any case
            _log.exception("a denied call could not be noted")
        return Deny(f"Bridle denied this: {verdict.because}")

    # --- what becomes of a call

    def answered(self, request: InboundRequest, answer: Answer) -> None:
        """An answer has been written to the CLI."""
        match request, answer:
            case HookCallback(callback_id=id_), HookOutput() if id_ == GATE_ID:
                specific = answer.hook_specific_output
                if not isinstance(specific, PreToolUseOutput):
                    return
                tool_use_id = request.tool_use_id or getattr(request.input, "tool_use_id", None)
                is_final = specific.permission_decision != "ask"
            case CanUseTool(tool_use_id=tool_use_id), _:
                is_final = True
            case _:
                return
        seen = self._seen.get(tool_use_id or "")
        if seen and seen.was_asked and is_final:
            self._tell(self._desk.delivered, tool_use_id or "")
            self._went_out(request, seen)

    def _went_out(self, request: InboundRequest, seen: _Seen) -> None:
        decision = seen.decision
        if decision is None:
            return
        if isinstance(request, CanUseTool):
            self._plans.chose(decision, request)
        elif isinstance(decision, Deny) and decision.interrupt is True:
            # A hook's answer can't end the turn on the CLIs where the wait is in the hook.
            self._end_turn()

    def told_mode(self, mode: str) -> None:
        """The CLI has said in which mode it is."""
        if (found := self._plans.told(mode)) and not self.is_in_past:
            self._tell(self._desk.went_on, *found, mode)

    def saw(self, message: User) -> None:
        """A tool's result: what was allowed has run."""
        content = message.message.content
        if isinstance(content, str):
            return
        for block in content:
            if isinstance(block, ToolResultBlock):
                seen = self._seen.pop(block.tool_use_id, None)
                if seen and seen.was_asked and seen.has_run:
                    self._tell(self._desk.ran, block.tool_use_id, bool(block.is_error))

    def interrupted(self) -> None:
        self._tell(self._desk.interrupted)

    def turn_ended(self) -> None:
        if not self.is_in_past:
            self._tell(self._desk.turn_ended)

    def ended(self, how: str) -> None:
        if not self._has_ended:
            self._has_ended = True
            self._tell(self._desk.ended, how)

    def _tell(self, desk: Callable[..., None], *facts: object) -> None:
        """That a desk can't take a note must not stop what it is told of."""
        try:
            desk(*facts)
        except Exception:  # noqa: BLE001 - whatever it is
            _log.exception("the desk could not take a note")

    def _remember(self, request: CanUseTool, seen: _Seen) -> _Seen:
        if request.tool_use_id:
            self._seen[request.tool_use_id] = seen
            if len(self._seen) > MAX_CALLS:
                del self._seen[next(iter(self._seen))]
        return seen


def _readable(given: Any) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise TypeError("the tool's input can't be read")
    return given


def _output(decision: Any, reason: str = "") -> HookOutput:
    return HookOutput(
        hook_specific_output=PreToolUseOutput(
            permission_decision=decision, permission_decision_reason=reason or UNSET
        )
    )


def _as_output(decision: Decision) -> HookOutput:
    """A decision as a hook gives it. A hook can't change permissions: the gate has done that."""
    if isinstance(decision, Deny):
        return _output("deny", decision.message)
    output = _output("allow")
    specific = output.hook_specific_output
    assert isinstance(specific, PreToolUseOutput)
    specific.updated_input = decision.updated_input
    return output


def _after(noted: Awaitable[None] | None, then: _T) -> _T | Awaitable[_T]:
    """The answer, when what it rests on is written down."""
    return then if noted is None else _once_noted(noted, then)


async def _once_noted(noted: Awaitable[None], then: _T) -> _T:
    await noted
    return then
