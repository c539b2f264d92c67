"""What a record reads of the lines of the wire: as little of each as will do.

Owns the reading, and how an agent's use adds up over its processes (`views.costs` has the
arithmetic of one). Our own encoder puts launch, offset and type at
the head of a line's event, so an ordinary one is read there, whatever its length, and a cut one
too. Whatever can't be read raises `msgspec.MsgspecError`.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import Struct, field

from ..protocol import messages
from ..protocol.messages import ModelUsage
from ..views.costs import Tokens, Total
from ..views.stream import Entry, Wrote
from .states import Outcome

_LINE_HEAD = re.compile(rb'\{"launch":"([^"\\]*)","end":(\d+)(?:,"type":"([^"\\]*)")?').match
_WROTE_HEAD = re.compile(
    rb'\{"launch":"([^"\\]*)","start":\d+,"what":"([^"\\]*)"(?:,"id":"([^"\\]*)")?'
).match
_PROMPT_HEAD = re.compile(rb'\{"uuid":"([^"\\]*)"').match


class _LineHead(Struct):
    launch: str
    end: int
    type: str = ""


_decode_head = msgspec.json.Decoder(_LineHead).decode
_decode_wrote = msgspec.json.Decoder(Wrote).decode


def line_of(entry: Entry) -> tuple[str, int, str]:
    """The launch, the offset at which the line ends, and its type."""
    head = _LINE_HEAD(entry.body)
    if head is not None:
        launch, end, kind = head.groups(b"")
        return launch.decode(), int(end), kind.decode()
    line = _decode_head(entry.body)
    return line.launch, line.end, line.type


def written_in(entry: Entry) -> tuple[str, str, str]:
    """The launch, what was written, and the id of it."""
    head = _WROTE_HEAD(entry.body)
    if head is not None:
        launch, what, name = head.groups(b"")
        return launch.decode(), what.decode(), name.decode()
    wrote = _decode_wrote(entry.body)
    return wrote.launch, wrote.what, wrote.id


def uuid_in(head: bytes) -> str:
    """The uuid of a prompt of which only the head is there."""
    found = _PROMPT_HEAD(head)
    if found is None:
        raise msgspec.DecodeError("no uuid at the head of a prompt")
    return found[1].decode()


class _Approval(Struct):
    id: str


_decode_approval = msgspec.json.Decoder(_Approval).decode
_APPROVAL_HEAD = re.compile(rb'\{"id":"([^"\\]*)"').match


def approval_in(entry: Entry) -> str:
    """The id of an approval; "" where it is in what was cut off."""
    head = _APPROVAL_HEAD(entry.body)
    if head is not None:
        return head[1].decode()
    return "" if entry.is_cut else _decode_approval(entry.body).id


class Applied(Struct):
    """A policy: its digest, and the files that it was read from."""

    digest: str
    files: tuple[str, ...] = ()


_decode_policy = msgspec.json.Decoder(Applied).decode


def policy_in(entry: Entry) -> Applied:
    return _decode_policy(entry.body)


# --- messages, each with what is wanted of it


class _Message(Struct, rename={"is_replay": "isReplay"}):
    session_id: str | None = None
    uuid: str | None = None
    is_replay: bool = False


class _Init(Struct):
    user_message_uuids: list[str] | None = None
    capabilities: list[str] = []


class Life(Struct):
    """A prompt on its way through the CLI's queue."""

    command_uuid: str
    state: str


class _MessageLine(Struct):
    line: _Message


class _InitLine(Struct):
    line: _Init


class _LifeLine(Struct):
    line: Life


_decode_message = msgspec.json.Decoder(_MessageLine).decode
_decode_init = msgspec.json.Decoder(_InitLine).decode
_decode_life = msgspec.json.Decoder(_LifeLine).decode

#: A CLI that announces this names the prompts of each turn.
_NAMES_PROMPTS = "msg_lifecycle_v1"


def session_id_in(entry: Entry) -> str | None:
    return None if entry.is_cut else _decode_message(entry.body).line.session_id


def repeated_in(entry: Entry) -> str | None:
    """The uuid of the prompt of ours that the CLI repeats, if it does."""
    if entry.is_cut or b'"isReplay":true' not in entry.body:
        return None
    message = _decode_message(entry.body).line
    return message.uuid if message.is_replay else None


def prompts_begun(entry: Entry) -> list[str] | None:
    """The prompts for which a turn begins; None if the CLI is one that does not tell."""
    if entry.is_cut:
        return None
    init = _decode_init(entry.body).line
    if init.user_message_uuids is None and _NAMES_PROMPTS in init.capabilities:
        return []
    return init.user_message_uuids


def life_in(entry: Entry) -> Life:
    return _decode_life(entry.body).line


# --- results


class _TurnTokens(Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


#: More than this is no sum of money, and would not fit into what it is counted in.
_MAX_USD = 1e9


class Result(Struct, kw_only=True):
    """The end of a turn. Money and `model_usage` are cumulative over the process."""

    subtype: str = ""
    is_error: bool = False
    terminal_reason: str | None = None
    session_id: str | None = None
    total_cost_usd: float | None = None
    usage: _TurnTokens | None = None
    model_usage: dict[str, ModelUsage] = field(name="modelUsage", default_factory=dict)
    model_usage_since_last_result: dict[str, ModelUsage] | None = None
    origin: Any = None
    user_message_uuid: str | None = None
    user_message_uuids: list[str] | None = None

    @property
    def outcome(self) -> Outcome:
        if self.terminal_reason is not None and self.terminal_reason.startswith("aborted"):
            return "cancelled"
        # Old CLIs call an interrupted turn no error.
        if self.subtype == "error_during_execution" and not self.is_error:
            return "cancelled"
        return "complete" if self.subtype == "success" and not self.is_error else "failed"

    @property
    def totals(self) -> messages.Result:
        """As far as it tells what was used."""
        return messages.Result(
            subtype=self.subtype,
            is_error=self.is_error,
            total_cost_usd=min(max(self.total_cost_usd or 0.0, 0.0), _MAX_USD),
            model_usage=self.model_usage,
            model_usage_since_last_result=self.model_usage_since_last_result,
        )


class _ResultLine(Struct):
    line: Result


_decode_result = msgspec.json.Decoder(_ResultLine).decode
# Quotes inside of a text are escaped, so these are names of fields wherever they are found.
_CUT_WORDS = re.compile(rb'"(subtype|terminal_reason|session_id|user_message_uuid)":"([^"\\]*)"')
_CUT_COST = re.compile(rb'"total_cost_usd":([0-9.eE+-]+),')


def result_in(entry: Entry) -> Result:
    """The result; of a cut one, what is at the head of it."""
    if not entry.is_cut:
        return _decode_result(entry.body).line
    words = {name.decode(): word.decode() for name, word in _CUT_WORDS.findall(entry.body)}
    cost = _CUT_COST.search(entry.body)
    return Result(
        **({"subtype": "success"} | words),
        is_error=b'"is_error":true' in entry.body,
        total_cost_usd=float(cost[1]) if cost else None,
    )


class Usage(Struct, kw_only=True, omit_defaults=True):
    """What a session used in all. Money is in millionths of a dollar: whole numbers do not drift.

    `earlier` is of the processes before the present one, `launch` what that one has told.
    """

    micros: int = 0
    tokens: Tokens = Tokens()
    earlier_micros: int = 0
    earlier_tokens: Tokens = Tokens()
    launch: Total = Total()
    #: What turns have told for themselves: it counts where totals of models are not told.
    of_turns: Tokens = Tokens()

    @property
    def counted_tokens(self) -> int:
        """As a budget counts them: without what was read again from the cache, which grows with
        every call and costs a tenth."""
        return self.tokens.input + self.tokens.output + self.tokens.cache_creation

    def start_again(self) -> None:
        """Another process tells from now on."""
        self.earlier_micros, self.earlier_tokens = self.micros, self.tokens
        self.launch, self.of_turns = Total(), Tokens()

    def tell(self, result: Result) -> None:
        # Where the total was cut off, the next result has it.
        if result.total_cost_usd is not None:
            self.launch = self.launch.after(result.totals)
        if result.usage:
            self.of_turns += _tokens_of(result.usage)
        models = self.launch.own_models
        told = sum((use.tokens for use in models.values()), Tokens()) if models else self.of_turns
        self.micros = self.earlier_micros + round(self.launch.own * 1_000_000)
        self.tokens = self.earlier_tokens + told


def _tokens_of(told: _TurnTokens) -> Tokens:
    return Tokens(
        told.input_tokens or 0,
        told.output_tokens or 0,
        told.cache_read_input_tokens or 0,
        told.cache_creation_input_tokens or 0,
    )
