"""The gate: every tool call is judged before it runs, also those that the CLI would not ask about.

The CLI calls a PreToolUse hook of ours for every tool, and we wait for a decision there: nothing
else can answer first. (`can_use_tool` can be overtaken by a hook in the user's settings, and CLIs
differ in when they send it.) A question that follows is answered at once from what was decided.
After the call, another hook of ours shows what really ran: if that is not what was judged, or was
never allowed, the agent is stopped. Whatever goes wrong raises, and the caller denies: a hook is
never answered with an error.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, TypeVar

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from ..policy.force import InForce
from ..policy.presets import Preset
from ..policy.rewriting import REWRITTEN, survives_rewriting
from ..policy.suggest import text_of
from ..policy.tools import PLAN, QUESTION, SHELL
from ..policy.verdicts import Allowed, Asked, Call, Denied, Verdict
from ..protocol.blocks import ToolResultBlock
from ..protocol.capabilities import Capabilities
from ..protocol.control import Answer, CanUseTool, HookCallback, InboundRequest
from ..protocol.hook_outputs import HookOutput, PreToolUseOutput
from ..protocol.hooks import PostToolUse, PostToolUseFailure, PreToolUse
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
from .directory import Directory, depends
from .effects import differs
from .hooks import GATE_ID
from .plans import Plans
from .recall import hook_decision, question_decision

#: More calls than this are not under way in one agent.
MAX_CALLS = 10_000
MAX_FINISHED = 32

#: These two are asked about by some CLIs even after the hook has allowed them.
ALWAYS_ASKED = (PLAN, QUESTION)

#: Never changed: what is in it is echoed from the request.
ALLOW: Decision = Allow()

#: So much of an input stands in a message about it.
MAX_SHOWN = 500

MOVED = (
    "Bridle denied this: another command may have changed the working directory since this call "
    "was judged. Call it again."
)

_T = TypeVar("_T")
HookReply: TypeAlias = HookOutput | Awaitable[HookOutput]
Reply: TypeAlias = Decision | Awaitable[Decision]

_log = logging.getLogger("bridle.session")


class _Seen(Struct):
    """A call that the gate has seen."""

    call: Call
    decision: Decision | None = None
    #: Whether somebody was asked, rather than a rule.
    was_asked: bool = False
    #: Whether our hook told the CLI to ask: then its question only repeats what was decided.
    is_question_due: bool = False
    #: How many commands had changed the working directory when it was judged.
    moves: int = 0
    #: An input that another hook of ours has put in its place.
    changed: object = None
    is_delivered: bool = False
    #: Whether whoever was asked has allowed it.
    was_approved: bool = False
    #: Whether an earlier controller has answered it: by a rule, or because somebody was asked.
    is_recalled: bool = False

    @property
    def is_allowed(self) -> bool:
        return isinstance(self.decision, Allow)

    @property
    def input(self) -> object:
        """The input that may run."""
        changed = self.decision.updated_input if isinstance(self.decision, Allow) else UNSET
        return self.call.input if isinstance(changed, UnsetType) else changed

    def is_about(self, request: CanUseTool) -> bool:
        """Whether the decision is about this very request, and not about one with its id alone."""
        same_input = request.input in (self.call.input, self.input)
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
        self._directory = Directory()
        self._seen: dict[str, _Seen] = {}
        #: The last ones that have a result.
        self._finished: dict[str, _Seen] = {}
        self._capabilities: Callable[[], Capabilities] = Capabilities
        self._has_ended = False
        #: It is told what was: nothing that waits now ends by that.
        self.is_in_past = False
        self._end_turn: Callable[[], None] = lambda: None
        self._confirm_mode: Callable[[str | None], None] = lambda _: None
        self._halt: Callable[[str], None] = lambda _: None

    def meet(
        self,
        capabilities: Callable[[], Capabilities],
        end_turn: Callable[[], None],
        confirm_mode: Callable[[str | None], None],
        halt: Callable[[str], None],
    ) -> None:
        """The CLI is known now: what it can do as far as it has shown, how to interrupt it, how to
        stop it, and whom to tell of its mode."""
        self._capabilities = capabilities
        self._end_turn, self._confirm_mode, self._halt = end_turn, confirm_mode, halt

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
                self._recall_hook(event, line)
            case CanUseTool(tool_use_id=str(tool_use_id)):
                decision, call = question_decision(line), Call(request.tool_name, request.input)
                seen = self._seen.get(tool_use_id) or self._remember(request, _Seen(call))
                seen.decision = self._applied(decision) if isinstance(decision, Allow) else decision
                seen.was_asked = True
                self._tell(self._desk.delivered, tool_use_id)
                self._plans.chose(decision, request)

    def _recall_hook(self, event: PreToolUse, line: bytes) -> None:
        if not event.tool_use_id or not isinstance(event.tool_input, dict):
            return
        call = Call(event.tool_name, event.tool_input, event.permission_mode, event.cwd)
        self._plans.saw(call)
        seen = self._seen[event.tool_use_id] = _Seen(call, was_asked=True, is_recalled=True)
        seen.decision, seen.is_question_due = hook_decision(line)
        if event.tool_name == PLAN and seen.decision == ALLOW:
            seen.decision = (
                None  # the mode and the plan's text come with the answer to its question
            )
        if seen.is_allowed:
            self._directory.allowed(event.tool_use_id, call, event.agent_id)
        if seen.decision:
            self._tell(self._desk.delivered, event.tool_use_id)

    # --- before a call

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
        seen = self._remember(request, _Seen(call, moves=self._directory.moves))
        verdict = unless_asked(self._judge(call), request, self._desk)
        match verdict:
            case Allowed():
                noted = self._desk.judged(request, verdict)
                if noted is None:
                    return self._hook_answer(request, seen, ALLOW)
                return self._once_noted(request, seen, noted)
            case Denied():
                return self._hook_answer(request, seen, self._denied(request, verdict))
        return self._ask_in_hook(request, seen, verdict)

    def _ask_in_hook(self, request: CanUseTool, seen: _Seen, verdict: Asked) -> HookReply:
        seen.was_asked = True
        request = self._plans.shown(request)
        given = self._desk.ask(request, replace(verdict, cwd=seen.call.cwd))
        if inspect.isawaitable(given):
            return self._later_in_hook(request, seen, given)
        return self._hook_answer(request, seen, self._decided(request, seen, given))

    def question(self, request: CanUseTool) -> Reply:
        """The CLI asks by itself: after our hook has allowed the call, or without having called it.

        What was decided is answered at once: a hook in the user's settings may answer, too, and the
        first answer counts.
        """
        seen = self._seen.get(request.tool_use_id or "")
        if seen and seen.decision and seen.is_about(request) and self._holds(seen, request):
            return seen.decision
        is_second = seen is not None and seen.is_allowed and seen.is_about(request)
        if seen is None or seen.call.tool != request.tool_name:
            call = Call(request.tool_name, request.input)
            seen = self._remember(request, _Seen(call, moves=self._directory.moves))
        call = replace(seen.call, tool=request.tool_name, input=request.input)
        verdict = unless_asked(self._judge(call), request, self._desk)
        match verdict:
            case Denied():
                return self._denied(request, verdict)
            case Allowed() if not is_second:
                return self._once_judged(request, seen, verdict)
            case Allowed():
                # It knows something that the rules do not.
                verdict = Asked(
                    request.decision_reason or "the CLI asks, although the policy allows it"
                )
        seen.was_asked = True
        request = self._plans.shown(request)
        given = self._desk.ask(request, replace(verdict, cwd=call.cwd))
        if inspect.isawaitable(given):
            return self._later(request, seen, given)
        return self._decided(request, seen, given)

    def _holds(self, seen: _Seen, request: CanUseTool) -> bool:
        """Whether what was decided answers the CLI's own question, too. What a rule has allowed and
        the CLI asks about all the same is for a person."""
        if isinstance(seen.decision, Deny) or seen.is_question_due:
            return True
        is_known = seen.was_asked and not seen.is_recalled
        return is_known or request.tool_name in ALWAYS_ASKED

    def _once_judged(self, request: CanUseTool, seen: _Seen, verdict: Allowed) -> Reply:
        noted = self._desk.judged(request, verdict)
        seen.decision = ALLOW
        self._directory.allowed(request.tool_use_id or "", seen.call, request.agent_id)
        return ALLOW if noted is None else _after(noted, ALLOW)

    def changed(self, event: PreToolUse, answer: object) -> object:
        """What another hook of the controller's answers: an input that it changes is judged, too.

        Nobody can be asked about it here: the CLI may run it as soon as this hook has answered.
        """
        specific = getattr(answer, "hook_specific_output", answer)
        given = getattr(specific, "updated_input", UNSET)
        if not isinstance(specific, PreToolUseOutput) or isinstance(given, UnsetType):
            return answer
        call = Call(event.tool_name, _readable(given), event.permission_mode, event.cwd)
        verdict = self._judge(call)
        if isinstance(verdict, Allowed):
            if seen := self._seen.get(event.tool_use_id or ""):
                seen.changed = given
            return answer
        return _output("deny", f"Bridle: a hook has changed the input: {verdict.because}")

    def _judge(self, call: Call) -> Verdict:
        """By the policy; and nobody but a person may allow what this CLI would change."""
        verdict = self.policy.judge(call)
        if call.tool != SHELL or isinstance(verdict, Denied) or self._capabilities().keeps_commands:
            return verdict
        command = call.input.get("command")
        if not isinstance(command, str) or survives_rewriting(command):
            return verdict
        return Asked(f"a person must see this: {REWRITTEN}", guard=REWRITTEN)

    # --- waiting

    async def _once_noted(
        self, request: CanUseTool, seen: _Seen, noted: Awaitable[None]
    ) -> HookOutput:
        await noted
        return self._hook_answer(request, seen, ALLOW)

    async def _later_in_hook(
        self, request: CanUseTool, seen: _Seen, given: Awaitable[Decision]
    ) -> HookOutput:
        return self._hook_answer(request, seen, self._decided(request, seen, await given))

    async def _later(
        self, request: CanUseTool, seen: _Seen, given: Awaitable[Decision]
    ) -> Decision:
        return self._decided(request, seen, await given)

    # --- answering

    def _decided(self, request: CanUseTool, seen: _Seen, decision: Decision) -> Decision:
        if not isinstance(decision, Allow | Deny):
            raise TypeError(f"it answered {decision!r}, which is neither Allow(…) nor Deny(…)")
        seen.was_approved = isinstance(decision, Allow)
        is_read = self._capabilities().does("edited plans come with the answer") == "yes"
        decision = self._plans.delivered_by(decision, request, is_read=is_read)
        decision = self._still_allowed(decision, request, seen)
        seen.call = replace(seen.call, tool=request.tool_name, input=request.input)
        seen.decision = self._applied(decision) if isinstance(decision, Allow) else decision
        return seen.decision

    def _hook_answer(self, request: CanUseTool, seen: _Seen, decision: Decision) -> HookOutput:
        """A decision as our hook gives it. It can't change permissions: the gate has done that."""
        has_moved = depends(seen.call) and self._directory.may_have_changed(seen.moves)
        if isinstance(decision, Allow) and has_moved:
            decision = Deny(MOVED)
        seen.decision = decision
        if isinstance(decision, Deny):
            if decision.interrupt is True:
                # A hook's answer can't end the turn: behind it the model might be asked once more.
                self._end_turn()
            return _output("deny", decision.message)
        self._directory.allowed(request.tool_use_id or "", seen.call, request.agent_id)
        return self._allowing_output(seen, decision)

    def _allowing_output(self, seen: _Seen, decision: Allow) -> HookOutput:
        is_changed = not isinstance(decision.updated_input, UnsetType)
        has_updates = not isinstance(decision.updated_permissions, UnsetType)
        if seen.call.tool == PLAN and (is_changed or has_updates):
            # Without the input it asks, and takes an edited plan and the mode from that answer.
            seen.is_question_due = True
            return _output("allow")
        is_plain = seen.call.mode != "plan" or seen.call.tool in ALWAYS_ASKED
        if is_plain or self._capabilities().does("plan mode doubts a hook's allow") == "no":
            output = _output("allow")
        else:
            # An `allow` would go to a classifier.
            seen.is_question_due = True
            output = _output("ask")
        specific = output.hook_specific_output
        assert isinstance(specific, PreToolUseOutput)
        # Always: a hook in the user's settings that ends before ours could else change it.
        specific.updated_input = dict(seen.call.input) if not is_changed else decision.updated_input
        return output

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
        verdict = self._judge(Call(request.tool_name, given, seen.call.mode, seen.call.cwd))
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

    def forget(self, tool_use_id: str) -> None:
        """What comes by this id from now on is another call."""
        self._seen.pop(tool_use_id, None)

    def answered(self, request: InboundRequest, answer: Answer) -> None:
        """An answer has been written to the CLI."""
        match request, answer:
            case HookCallback(callback_id=id_), HookOutput() if id_ == GATE_ID:
                tool_use_id = request.tool_use_id or getattr(request.input, "tool_use_id", None)
            case CanUseTool(tool_use_id=tool_use_id), _:
                pass
            case _:
                return
        seen = self._seen.get(tool_use_id or "")
        if seen and seen.was_asked and seen.decision:
            if not seen.is_delivered:
                seen.is_delivered = True
                self._tell(self._desk.delivered, tool_use_id or "")
                if seen.was_approved and isinstance(seen.decision, Deny):
                    self._tell(self._desk.overruled, tool_use_id or "", seen.decision.message)
            if isinstance(request, CanUseTool):
                self._plans.chose(seen.decision, request)

    def told_mode(self, mode: str) -> None:
        """The CLI has said in which mode it is."""
        if (found := self._plans.told(mode)) and not self.is_in_past:
            self._tell(self._desk.went_on, *found, mode)

    def ran(self, event: PostToolUse | PostToolUseFailure) -> HookReply:
        """The CLI shows with which input a tool has run, and waits for our answer. If that may not
        have run, it waits until it is stopped, and does nothing more."""
        id_ = event.tool_use_id or ""
        seen = self._seen.get(id_) or self._finished.get(id_)
        why = self._why_not(event, seen)
        if not why:
            return HookOutput()
        self._stop(f"{event.tool_name} ran {why}")
        return _never()

    def _why_not(self, event: PostToolUse | PostToolUseFailure, seen: _Seen | None) -> str:
        """Why this should not have run; "" if it was to."""
        if seen and seen.call.tool in ALWAYS_ASKED:
            return ""
        if seen is None or not seen.is_allowed:
            return _unallowed(seen)
        if self._is_judged(seen, event):
            return ""
        return (
            f"with another input than the one that was allowed: {_short(event.tool_input)} instead "
            f"of {_short(seen.input)}; a hook in Claude Code's settings may have changed it"
        )

    def _is_judged(self, seen: _Seen, event: PostToolUse | PostToolUseFailure) -> bool:
        used = event.tool_input
        if not isinstance(used, dict):
            return False
        given = (seen.input, seen.call.input, seen.changed)
        if any(isinstance(one, dict) and not differs(one, used) for one in given):
            return True
        return isinstance(self._judge(replace(seen.call, input=used)), Allowed)

    def saw(self, message: User) -> None:
        """A tool's result: what was allowed has run."""
        content = message.message.content
        if isinstance(content, str):
            return
        for block in content:
            if isinstance(block, ToolResultBlock):
                seen = self._seen.pop(block.tool_use_id, None)
                self._directory.finished(block.tool_use_id)
                self._check_result(seen, block)
                if seen:
                    self._finish(block.tool_use_id, seen)
                if seen and seen.was_asked and seen.is_allowed:
                    self._tell(self._desk.ran, block.tool_use_id, bool(block.is_error))

    def _finish(self, tool_use_id: str, seen: _Seen) -> None:
        """What it ran with may be shown after its result."""
        self._finished[tool_use_id] = seen
        if len(self._finished) > MAX_FINISHED:
            del self._finished[next(iter(self._finished))]

    def _check_result(self, seen: _Seen | None, block: ToolResultBlock) -> None:
        """A call that was refused, or that never came here, gives an error and nothing else."""
        is_harmless = block.is_error or (seen is not None and seen.call.tool in ALWAYS_ASKED)
        if not is_harmless and not (seen and seen.is_allowed):
            self._stop(f"{seen.call.tool if seen else 'a tool'} ran {_unallowed(seen)}")

    def _stop(self, words: str) -> None:
        if not self.is_in_past:
            _log.error("the agent is stopped: %s", words)
            self._halt(words)

    def interrupted(self) -> None:
        self._tell(self._desk.interrupted)

    def turn_ended(self) -> None:
        self._directory.turn_ended()
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


async def _after(noted: Awaitable[None], then: _T) -> _T:
    """The answer, when what it rests on is written down."""
    await noted
    return then


def _unallowed(seen: _Seen | None) -> str:
    if seen is None:
        return "although Claude Code did not ask about it"
    why = "it was denied" if seen.decision else "nobody had decided about it yet"
    return f"although {why}"


async def _never() -> HookOutput:
    return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]


def _short(given: object) -> str:
    text = repr(given)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"
