"""What an approval is: who is asked what, who decided how, and what became of it.

Owns the words, no behaviour: `fold` makes an approval from its events, `answer` says what the agent
is told, `standing` who may decide.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import Struct

Kind: TypeAlias = Literal["tool", "plan", "question", "elicitation"]
Status: TypeAlias = Literal["pending", "allowed", "denied", "timed_out", "cancelled"]
PlanMode: TypeAlias = Literal["default", "acceptEdits", "bypassPermissions"]

# --- who decides


class Person(Struct, frozen=True, tag="person"):
    """Somebody, and where they sat (`via`: terminal, web, api)."""

    name: str
    via: str = ""


class Agent(Struct, frozen=True, tag="agent"):
    """The agent of another session: an ancestor of the one that asks."""

    session: str


class Nobody(Struct, frozen=True, tag="nobody"):
    """There is no one to ask. Can only say no."""


Decider: TypeAlias = Person | Agent | Nobody

# --- what they may choose


class Once(Struct, frozen=True, tag="once"):
    """Nothing is remembered."""


class ForSession(Struct, frozen=True, tag="session"):
    """From now on the session has this rule."""

    rule: str


class Always(Struct, frozen=True, tag="always"):
    """From now on all sessions at or below `folder` ("": everywhere) have this rule."""

    rule: str
    folder: str = ""


Remember: TypeAlias = Once | ForSession | Always


class Approve(Struct, frozen=True, tag="approve"):
    """Let the tool run, with another input where one is given.

    `directories` become folders that the CLI's session may work in.
    """

    input: dict[str, Any] | None = None
    message: str = ""
    remember: Remember = Once()
    directories: tuple[str, ...] = ()


class ApprovePlan(Struct, frozen=True, tag="approve_plan"):
    """Go on with the plan, or with `plan` in its place, in this mode."""

    mode: PlanMode = "default"
    plan: str | None = None
    message: str = ""


class AnswerQuestion(Struct, frozen=True, tag="answer_question"):
    """For the text of each question the label that was chosen, or words of one's own."""

    answers: dict[str, str]
    message: str = ""


class AcceptElicitation(Struct, frozen=True, tag="accept_elicitation"):
    """What the MCP server wanted to know."""

    content: dict[str, Any] = {}
    message: str = ""


class Reject(Struct, frozen=True, tag="reject"):
    """No; `message` is told to the model. `interrupt` also ends its turn."""

    message: str = ""
    interrupt: bool = False
    remember: Remember = Once()


Choice: TypeAlias = Approve | ApprovePlan | AnswerQuestion | AcceptElicitation | Reject

#: What can be chosen for what is asked.
CHOICES: dict[Kind, tuple[type[Choice], ...]] = {
    "tool": (Approve, Reject),
    "plan": (ApprovePlan, Reject),
    "question": (AnswerQuestion, Reject),
    "elicitation": (AcceptElicitation, Reject),
}

# --- how it ends


class Decided(Struct, frozen=True, tag="decided"):
    """`shown` is the digest of what the decider had before them ("": not told), `rule` what
    entitled them to decide, where it was not being a person."""

    by: Decider
    choice: Choice
    at: float
    shown: str = ""
    rule: str = ""


class Expired(Struct, frozen=True, tag="expired"):
    """Nobody decided in `after` seconds."""

    after: float
    at: float


Cause: TypeAlias = Literal["withdrawn", "interrupted", "turn ended", "process ended", "cancelled"]


class Cancelled(Struct, frozen=True, tag="cancelled"):
    """It is no longer asked. `withdrawn`: the CLI itself has taken the question back."""

    cause: Cause
    at: float
    words: str = ""


Ending: TypeAlias = Decided | Expired | Cancelled


class Outcome(Struct, frozen=True):
    """What became of a decision, as far as the agent let us see."""

    how: Literal["ran", "withdrawn", "process died"]
    at: float
    words: str = ""


# --- who is asked, one after the other


class PassedOver(Struct, frozen=True):
    """An ancestor who would have been asked, and why it was not."""

    session: str
    why: str


class Step(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whom it was put to. `to` is an ancestor's session, or "" for people, who may decide at any
    step; `until` is when it goes to the next. `why` says why it did not stay where it was before:
    the words are `by` the session that passed it on, or our own (""). `over` are those between."""

    to: str = ""
    at: float = 0
    until: float | None = None
    why: str = ""
    by: str = ""
    over: tuple[PassedOver, ...] = ()


# --- the whole


class ApprovalRequest(Struct, frozen=True, kw_only=True):
    """Something to ask for. `lineage` are the session's ancestors, root first.

    `guard` is what the laundering guard saw: unless it is empty, only a person may decide.
    """

    session: str
    launch: str
    kind: Kind
    tool: str
    input: dict[str, Any]
    lineage: tuple[str, ...] = ()
    tool_use_id: str | None = None
    #: The subagent inside the session that asks; None is the main loop.
    agent_id: str | None = None
    #: Texts of rules that "always" could add.
    suggestions: tuple[str, ...] = ()
    blocked_path: str | None = None
    reason: str = ""
    #: The rule that wants it asked, and where that is written.
    rule: str = ""
    source: str = ""
    notes: tuple[str, ...] = ()
    guard: str = ""
    #: The agent's folder: what "always" may be limited to.
    folder: str = ""
    #: The folder in which its shell is, where the CLI tells that.
    cwd: str = ""
    #: Whom it was put to until now, the last is the one who is asked; none: people are.
    steps: tuple[Step, ...] = ()


class Requested(ApprovalRequest, frozen=True, kw_only=True):
    """It is asked. `digest` is of what whoever decides must be shown."""

    id: str
    digest: str
    created: float
    expires: float | None = None


class Approval(Requested, frozen=True, kw_only=True):
    """All that its events say of an approval. Numbers of events are those of its session's stream.

    In lists and records a large input is cut, and `is_cut` says so; `Approvals.get` gives all.
    """

    status: Status = "pending"
    ending: Ending | None = None
    #: When the answer was written to the agent.
    delivered: float | None = None
    outcome: Outcome | None = None
    is_cut: bool = False
    requested_seq: int = 0
    ended_seq: int = 0
    #: The last event that is in it.
    seq: int = 0

    @property
    def asked(self) -> str:
        """The ancestor who is asked now; "" are people."""
        return self.steps[-1].to if self.steps else ""

    def was_put_to(self, session: str) -> bool:
        """Whether this ancestor is asked, or was before it went on to others."""
        return any(step.to == session for step in self.steps if step.to)

    @property
    def decision(self) -> Decided | None:
        """What somebody decided, if somebody did."""
        return self.ending if isinstance(self.ending, Decided) else None

    @property
    def is_finished(self) -> bool:
        """Nothing more can come of it: not pending, and its answer delivered or out of date."""
        if self.status == "pending":
            return False
        if self.outcome:
            return True
        if isinstance(self.ending, Cancelled) and self.ending.cause in _FINISHED_AT_ONCE:
            return True
        # Of a tool that may run, we hear what became of it, unless its process is not ours: the
        # only launch of such a session has the session's id.
        is_told = self.status != "allowed" or self.kind == "elicitation"
        is_told = is_told or self.launch == self.session
        return is_told and self.delivered is not None


#: Then nobody is left to be told.
_FINISHED_AT_ONCE: tuple[Cause, ...] = ("withdrawn", "process ended")
