"""One session's side of approvals: what its gate calls when a tool wants to run.

Owns how a request of the CLI becomes an approval and the approval an answer; does not judge (the
policy has), and keeps nothing: what waits is the service's. Whatever goes wrong raises, and then
the gate says no.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeAlias

from ..errors import BridleError, words_of
from ..journal import NewEvent
from ..policy.force import InForce
from ..policy.verdicts import Allowed, Asked, Denied
from ..protocol.control import CanUseTool, ElicitationAnswer, ElicitationRequest
from ..protocol.permissions import Decision
from .answer import answer_of, elicitation_answer_of
from .events import JUDGED, WENT_ON, Judged, WentOn, sealed
from .model import Approval, ApprovalRequest, Cancelled, Cause, Kind, Outcome
from .remember import ApplyRule, RememberedRule
from .service import Approvals

#: The rules that "always" could add for a request, the narrowest first.
Suggest: TypeAlias = Callable[[CanUseTool], list[str]]

_KINDS: dict[str, Kind] = {"ExitPlanMode": "plan", "AskUserQuestion": "question"}

_log = logging.getLogger(__name__)


def _no_suggestions(_: CanUseTool) -> list[str]:
    return []


class Desk:
    """For one launch of one session. `lineage` are the session's ancestors, root first.

    `apply` is told of rules that are remembered or forgotten while the session runs; `rules` gives
    those that are in force at its start. Without `expires_in` the service's own limit holds.
    `policy` is the session's: inputs that a decision changes, and rules that are to be remembered,
    are held against it.
    """

    def __init__(
        self,
        approvals: Approvals,
        *,
        session: str,
        launch: str,
        lineage: tuple[str, ...] = (),
        folder: str = "",
        suggest: Suggest = _no_suggestions,
        apply: ApplyRule | None = None,
        expires_in: float | None = None,
        policy: InForce | None = None,
    ) -> None:
        if policy:
            approvals.policies[session] = policy
        self._policy = policy
        self._approvals = approvals
        self.lineage = lineage
        self._folder = folder
        self._suggest = suggest
        self._expires_in = expires_in
        self._is_detached = False
        self._stop: Cancelled | None = None
        self._stop_of_all: Cancelled | None = None
        remembered = approvals.remembered
        self._listener = remembered.tell(session, folder, apply) if apply else None
        self.session = session
        self.launch = launch

    async def rules(self, *, own: bool = True) -> list[RememberedRule]:
        """The remembered rules that are in force for this session; without its own only those of
        its folder."""
        remembered = self._approvals.remembered
        always = await remembered.always(self._folder)
        return [*always, *await remembered.of_session(self.session)] if own else always

    # --- a call

    def judged(self, request: CanUseTool, verdict: Allowed | Denied) -> Awaitable[None] | None:
        """A rule has decided. An allow must wait for what this gives, and does not run the tool if
        that fails; a deny goes out whether it can be stored or not."""
        try:
            stored = self._approvals.store(self.session, [self._judgement(request, verdict)])
        except (BridleError, TypeError, ValueError, OverflowError) as error:
            if isinstance(verdict, Allowed):
                raise
            _log.error("a denied call can't be stored: %s", words_of(error))
            return None
        if isinstance(verdict, Allowed):
            return stored
        stored.add_done_callback(partial(_log_failure, "a denied call"))
        return None

    async def ask(self, request: CanUseTool, verdict: Asked) -> Decision:
        """Somebody must say. Asked again for the same call, it is the same approval.

        Cancelled (the CLI took its question back), it withdraws the approval at once.
        """
        asking = ApprovalRequest(
            session=self.session,
            launch=self.launch,
            lineage=self.lineage,
            kind=_KINDS.get(request.tool_name, "tool"),
            tool=request.tool_name,
            input=request.input,
            tool_use_id=request.tool_use_id,
            agent_id=request.agent_id,
            suggestions=tuple(self._suggest(request)),
            blocked_path=request.blocked_path,
            reason=verdict.because or request.decision_reason or "",
            rule=verdict.rule,
            source=verdict.source,
            notes=tuple(verdict.notes),
            guard=verdict.guard,
            folder=self._folder,
            cwd=verdict.cwd,
        )
        approval = await self._asked(asking)
        return answer_of(approval, request.input)

    async def elicit(self, request: ElicitationRequest) -> ElicitationAnswer:
        """An MCP server wants to know something."""
        given = {
            "message": request.message,
            "mode": request.mode,
            "url": request.url,
            "requested_schema": request.requested_schema,
        }
        asking = ApprovalRequest(
            session=self.session,
            launch=self.launch,
            lineage=self.lineage,
            kind="elicitation",
            tool=request.mcp_server_name,
            input={name: value for name, value in given.items() if value is not None},
            # Not its own id, which is the server's word: what was accepted once is asked again.
            tool_use_id=request.request_id,
            reason=request.title or request.description or "",
        )
        approval = await self._asked(asking)
        self._approvals.delivered(approval.id)  # there is nothing more to be heard of it
        return elicitation_answer_of(approval)

    def is_asked(self, tool_use_id: str) -> bool:
        """Whether it is asked or decided, and the CLI knows nothing of it yet."""
        approval_id = self._approvals.of_call(self.session, self.launch, tool_use_id)
        return approval_id is not None and any(
            approval.id == approval_id and approval.delivered is None
            for approval in self._approvals.unfinished(self.session, self.launch)
        )

    def delivered(self, tool_use_id: str) -> None:
        """The answer was written to the CLI."""
        approval_id = self._approvals.of_call(self.session, self.launch, tool_use_id)
        if approval_id:
            self._approvals.delivered(approval_id)

    def overruled(self, tool_use_id: str, why: str) -> None:
        """It was approved, and the agent was told no all the same."""
        approval_id = self._approvals.of_call(self.session, self.launch, tool_use_id)
        if approval_id:
            outcome = Outcome("withdrawn", self._approvals.clock.now(), why)
            self._approvals.outcome(approval_id, outcome)

    def ran(self, tool_use_id: str, is_error: bool = False) -> None:
        """The tool's result has come; of one with an error it is not known how far it ran."""
        approval_id = self._approvals.of_call(self.session, self.launch, tool_use_id)
        if approval_id:
            words = "its result is an error" if is_error else ""
            outcome = Outcome("ran", self._approvals.clock.now(), words)
            self._approvals.outcome(approval_id, outcome)

    async def _asked(self, request: ApprovalRequest) -> Approval:
        before = self._stop_of(request.agent_id)

        def stopped() -> Cancelled | None:
            stop = self._stop_of(request.agent_id)
            return stop if stop is not before else None

        limit = self._expires_in
        return await self._approvals.ask(
            request, expires_in=limit, left=self._left, stopped=stopped
        )

    def went_on(self, tool_use_id: str, chosen: str, told: str) -> None:
        """After a plan: the mode that was chosen, and the one in which the CLI says it is."""
        body = WentOn(launch=self.launch, tool_use_id=tool_use_id, chosen=chosen, told=told)
        try:
            event = sealed(WENT_ON, body, self._approvals.clock.now())
            stored = self._approvals.store(self.session, [event])
        except BridleError as error:
            _log.error("how a plan went on can't be stored: %s", words_of(error))
            return
        stored.add_done_callback(partial(_log_failure, "how a plan went on"))

    # --- the session

    def interrupted(self) -> None:
        """By us: what waits is cancelled at once, not when the CLI says so."""
        self._cancel("interrupted")

    def turn_ended(self) -> None:
        """Nobody waits in the main loop any more; subagents in the background may."""
        self._cancel("turn ended")

    def ended(self, how: str) -> None:
        """The process is gone."""
        self._cancel("process ended", how)
        now = self._approvals.clock.now()
        for approval in self._approvals.unfinished(self.session, self.launch):
            if approval.status == "allowed":
                self._approvals.outcome(approval.id, Outcome("process died", now, how))
        policies = self._approvals.policies
        if policies.get(self.session) is self._policy:  # and not that of a later run
            policies.pop(self.session, None)

    def detach(self) -> None:
        """We go, and the agent stays: from now on a cancelled `ask` leaves its approval pending."""
        self._is_detached = True
        self._listener = None

    def _cancel(self, cause: Cause, words: str = "") -> None:
        stop = Cancelled(cause, self._approvals.clock.now(), words)
        self._stop = stop
        if cause != "turn ended":
            self._stop_of_all = stop
        for approval in self._approvals.unfinished(self.session, self.launch):
            if approval.status == "pending" and self._stop_of(approval.agent_id) is stop:
                self._approvals.withdraw(approval.id, cause, words)

    def _stop_of(self, agent_id: str | None) -> Cancelled | None:
        """What last cancelled all that waited: in the main loop, or in a subagent."""
        return self._stop if agent_id is None else self._stop_of_all

    def _left(self, approval_id: str) -> None:
        if not self._is_detached:
            self._approvals.withdraw(approval_id)

    def _judgement(self, request: CanUseTool, verdict: Allowed | Denied) -> NewEvent:
        body = Judged(
            launch=self.launch,
            tool=request.tool_name,
            input=request.input,
            tool_use_id=request.tool_use_id,
            agent_id=request.agent_id,
            verdict=verdict,
        )
        return sealed(JUDGED, body, self._approvals.clock.now())


def _log_failure(what: str, stored: asyncio.Future[None]) -> None:
    if not stored.cancelled() and (error := stored.exception()):
        _log.error("%s can't be stored: %s", what, words_of(error))
