"""What a record reads of the lines of the wire: as little of each as will do.

Owns the reading, and how an agent's use adds up. Our own encoder puts launch, offset and type at
the head of a line's event, so an ordinary one is read there, whatever its length, and a cut one
too. Whatever can't be read raises `msgspec.MsgspecError`.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import Struct, field

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


class Amount(Struct, frozen=True, omit_defaults=True):
    """What was used. Money is in millionths of a dollar: whole numbers do not drift."""

    micros: int = 0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    @property
    def tokens(self) -> int:
        """As a budget counts them: without what was read again from the cache, which grows with
        every call and costs a tenth."""
        return self.input + self.output + self.cache_write

    def __add__(self, other: Amount) -> Amount:
        return Amount(
            self.micros + other.micros,
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
        )

    def __neg__(self) -> Amount:
        return Amount(-self.micros, -self.input, -self.output, -self.cache_read, -self.cache_write)


class _TurnTokens(Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _ModelTokens(Struct, rename="camel"):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0


#: More than this is no sum of money, and would not fit into what it is counted in.
_MAX_USD = 1e9


class Result(Struct, kw_only=True):
    """The end of a turn. Money and `model_usage` are cumulative over the process."""

    subtype: str = ""
    is_error: bool = False
    terminal_reason: str | None = None
    session_id: str | None = None
    total_cost_usd: float = 0
    usage: _TurnTokens | None = None
    model_usage: dict[str, _ModelTokens] = field(name="modelUsage", default_factory=dict)
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
    def named(self) -> list[str]:
        """The prompts that it says it answers."""
        return self.user_message_uuids or [u for u in (self.user_message_uuid,) if u]

    @property
    def micros(self) -> int:
        return round(min(max(self.total_cost_usd, 0.0), _MAX_USD) * 1_000_000)


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
        total_cost_usd=float(cost[1]) if cost else 0,
    )


class Usage(Struct, omit_defaults=True):
    """What a session used in all, and what of it the present process has told."""

    total: Amount = Amount()
    launch: Amount = Amount()

    def start_again(self) -> None:
        """The next process counts from nothing."""
        self.launch = Amount()

    def tell(self, result: Result) -> None:
        """Take the sums of a result. Where they shrink, the CLI has begun anew (after /clear)."""
        told = sum((_amount_of(model) for model in result.model_usage.values()), Amount())
        micros = result.micros
        has_tokens = bool(result.model_usage)
        if micros < self.launch.micros or (has_tokens and told.tokens < self.launch.tokens):
            self.start_again()
        if not has_tokens and result.usage:
            told = _amount_of(result.usage) + self.launch + Amount(-self.launch.micros)
        now = Amount(micros) + told
        self.total = self.total + now + -self.launch
        self.launch = now


def _amount_of(tokens: _TurnTokens | _ModelTokens) -> Amount:
    return Amount(
        0,
        tokens.input_tokens or 0,
        tokens.output_tokens or 0,
        tokens.cache_read_input_tokens or 0,
        tokens.cache_creation_input_tokens or 0,
    )
