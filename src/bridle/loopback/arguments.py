"""What each tool is given: its arguments, with the words by which a model understands them.

Owns their names, types, bounds and descriptions; what is done with them is in `methods`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct

from ..protocol.permissions import PermissionMode
from ..views.detail import Detail

#: So many sessions may be looked at in one poll.
MOST_SESSIONS = 32
MOST_EVENTS = 1_000
MOST_WAIT_MS = 600_000
MOST_PROMPT = 1_000_000
#: Of any limit: what is more is a mistake.
MOST = 1_000_000_000

OnBusy: TypeAlias = Literal["error", "queue", "interrupt"]
Until: TypeAlias = Literal["any", "approval", "turn_end"]

_Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=200)]
_NameOf: TypeAlias = Annotated[
    _Name | None, Meta(description="The session's name. Give this or session_id.")
]
_IdOf: TypeAlias = Annotated[
    _Name | None,
    Meta(description="The session's id, as claudecode_create gave it. Give this or name."),
]
_Detail: TypeAlias = Annotated[
    Detail,
    Meta(description="'normal' cuts long texts (then `cut` is how much is missing); 'full' hardly"),
]
_ApprovalId: TypeAlias = Annotated[
    _Name, Meta(description="The approval's id, from pending_approvals or an event.")
]


class _Arguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is not named here is refused."""


class OneSession(_Arguments, frozen=True, kw_only=True):
    """A session below the caller."""

    session_id: _IdOf = None
    name: _NameOf = None


class LimitsGiven(_Arguments, frozen=True, kw_only=True):
    """What the new session and all below it may use. What is left out is not limited by itself,
    but everything counts against your own limits too."""

    turns: Annotated[int, Meta(ge=1, le=MOST, description="How many prompts.")] | None = None
    cost_usd: Annotated[float, Meta(gt=0, le=MOST, description="How many dollars.")] | None = None
    seconds: (
        Annotated[float, Meta(gt=0, le=MOST, description="How many seconds of work.")] | None
    ) = None
    tokens: Annotated[int, Meta(ge=1, le=MOST, description="How many tokens.")] | None = None
    concurrency: (
        Annotated[
            int, Meta(ge=0, le=MOST, description="How many sessions below it may live at a time.")
        ]
        | None
    ) = None


_Rules: TypeAlias = Annotated[
    tuple[Annotated[str, Meta(min_length=1, max_length=4_000)], ...], Meta(max_length=200)
]


class Create(_Arguments, frozen=True, kw_only=True):
    name: Annotated[_Name, Meta(description="A name that no other session has.")]
    working_dir: Annotated[
        str,
        Meta(
            max_length=4_000,
            description="The folder that it works in: your own or one inside of it. A relative "
            "path is relative to your own folder.",
        ),
    ] = "."
    model: Annotated[_Name | None, Meta(description="The model. Without it: as yours.")] = None
    system_prompt: Annotated[
        Annotated[str, Meta(max_length=100_000)] | None,
        Meta(description="Replaces the agent's system prompt. Seldom needed."),
    ] = None
    loopback_enabled: Annotated[
        bool,
        Meta(
            description="Whether what it wants to do and may not do by itself is put to you first "
            "(you then see it in pending_approvals). With false you are never asked: its policy "
            "and people decide."
        ),
    ] = True
    allowed_tools: Annotated[
        _Rules,
        Meta(
            description="Rules for what it may do without asking, as Bash(npm test:*) or "
            "Edit(./src/**). Never more than you may delegate."
        ),
    ] = ()
    disallowed_tools: Annotated[_Rules, Meta(description="Rules for what it may never do.")] = ()
    permission_mode: Annotated[
        PermissionMode | None, Meta(description="The CLI's mode. Never wider than your own.")
    ] = None
    policy: Annotated[
        _Name | None,
        Meta(
            description="What it may do without a rule that allows it. 'ask' (so it is without "
            "this): read files; all else is asked. 'read-only', 'plan': read files and look around "
            "by commands; changes are refused. 'edits': that, and change files in its folder; "
            "other commands are asked. 'autonomous': nearly all. Or the name of a policy that a "
            "person has kept for you. Never wider than your own."
        ),
    ] = None
    limits: Annotated[LimitsGiven | None, Meta(description="What it and all below it may use.")] = (
        None
    )


class Chat(OneSession, frozen=True, kw_only=True):
    prompt: Annotated[
        str, Meta(min_length=1, max_length=MOST_PROMPT, description="What the agent is told.")
    ]
    on_busy: Annotated[
        OnBusy,
        Meta(
            description="If it is still at work: 'error' tells you so and does nothing, 'queue' "
            "has it told afterwards, 'interrupt' ends what it does now."
        ),
    ] = "error"
    idempotency_key: Annotated[
        _Name | None,
        Meta(description="The same key to the same session tells it once, however often you call."),
    ] = None


class Poll(_Arguments, frozen=True, kw_only=True):
    session_id: _IdOf = None
    name: _NameOf = None
    session_ids: Annotated[
        Annotated[tuple[_Name, ...], Meta(min_length=1, max_length=MOST_SESSIONS)] | None,
        Meta(description="Several sessions at once, by id or name, in place of session_id."),
    ] = None
    from_seq: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(
            description="See again from this event number on, which does not move your own "
            "position. Without it you get what you have not got yet."
        ),
    ] = None
    cursor: Annotated[
        Annotated[str, Meta(max_length=1_000)] | None,
        Meta(description="From an earlier answer: see again from there, as with from_seq."),
    ] = None
    limit: Annotated[
        int, Meta(ge=1, le=MOST_EVENTS, description="At most so many events (of each session).")
    ] = 100
    wait_ms: Annotated[
        int,
        Meta(ge=0, le=MOST_WAIT_MS, description="How long to wait if there is nothing yet."),
    ] = 25_000
    until: Annotated[
        Until,
        Meta(
            description="What to wait for: 'any' new event, an 'approval' that you must decide (or "
            "the end of the turn), or 'turn_end' (or an approval that you must decide). 'turn_end' "
            "with a long wait_ms needs the fewest calls."
        ),
    ] = "any"
    detail: _Detail = "normal"


class Respond(_Arguments, frozen=True, kw_only=True):
    approval_id: _ApprovalId
    approve: Annotated[bool, Meta(description="true lets it happen, false forbids it.")]
    message: Annotated[
        str,
        Meta(
            max_length=10_000,
            description="With false: why not; the agent is told. Else for the log.",
        ),
    ] = ""
    updated_input: Annotated[
        dict[str, Any] | None,
        Meta(description="Run the tool with this input, all of it, in place of its own."),
    ] = None
    answers: Annotated[
        dict[str, str] | None,
        Meta(description="For a question: the text of each question, and its answer."),
    ] = None
    remember: Annotated[
        Annotated[str, Meta(min_length=1, max_length=4_000)] | None,
        Meta(
            description="A rule, as Bash(npm test:*): calls like it are not asked any more in this "
            "session. Never more than you may delegate."
        ),
    ] = None


class Pending(OneSession, frozen=True, kw_only=True):
    approval_id: Annotated[
        _Name | None, Meta(description="Only this one: with detail 'full' all of its input.")
    ] = None
    detail: Annotated[
        Detail, Meta(description="With approval_id: how much of its input is shown.")
    ] = "normal"


class Escalate(_Arguments, frozen=True, kw_only=True):
    approval_id: _ApprovalId
    why: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=2_000,
            description="Why you do not decide it: people read this.",
        ),
    ]


class Fork(OneSession, frozen=True, kw_only=True):
    new_name: Annotated[_Name, Meta(description="The name of the new session.")]
    node_id: Annotated[
        _Name | None,
        Meta(
            description="Go on from this message (from claudecode_tree or an event) and forget "
            "what came after it. Without it: from the end."
        ),
    ] = None
    prompt: Annotated[
        Annotated[str, Meta(min_length=1, max_length=MOST_PROMPT)] | None,
        Meta(description="What the new one is told first."),
    ] = None


class Tree(OneSession, frozen=True, kw_only=True):
    from_seq: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="Messages from this event number on. Without it: the last ones."),
    ] = None
    limit: Annotated[int, Meta(ge=1, le=MOST_EVENTS, description="Look at so many events.")] = 200


class List(_Arguments, frozen=True, kw_only=True):
    live_only: Annotated[bool, Meta(description="Leave out those that have ended.")] = False
    limit: Annotated[int, Meta(ge=1, le=200, description="At most so many, newest first.")] = 100


class Result(OneSession, frozen=True, kw_only=True):
    detail: _Detail = "normal"


class Stop(OneSession, frozen=True, kw_only=True):
    why: Annotated[str, Meta(max_length=500, description="Kept in the log.")] = ""
