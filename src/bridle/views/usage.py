"""What a session has used: tokens, money, turns and time, in all, per launch and per model. Pure.

Owns the fold; `costs` has the arithmetic of totals. What recordings of real CLIs show beside that:

- `usage` of a result is that turn's, and of the main loop alone: subagents and side calls are in
  `modelUsage` only. So tokens are taken from there, and from `usage` where there is none.
- `duration_ms` is the turn's, `duration_api_ms` a total of the process, like the cost; 2.1.325 says
  0 for slash commands.
- `num_turns` counts requests to the model, or (old CLIs, slash commands) messages: turns are
  counted by their results.
- `usage` of an assistant line is, on 2.1.12 and 2.1.325, what was known when the message began:
  right for the input, 1 for the output. Lines of one message repeat it.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from ..protocol.messages import Assistant, Result
from ..protocol.messages import Usage as ToldUsage
from . import stream
from .costs import Models, ModelUse, Tokens, Total, plus
from .reading import Reading, reading_of

#: So many launches are told one by one; older ones only in all.
MAX_LAUNCHES = 100
#: So many agents at a time are told apart in the estimate of a turn.
MAX_AGENTS = 100


class LaunchUsage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one process used. `api_seconds` is how long it waited for the model."""

    launch: str
    turns: int = 0
    cost_usd: float = 0.0
    seconds: float = 0.0
    api_seconds: float = 0.0
    tokens: Tokens = Tokens()
    models: Models = {}


class Usage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a session used. `running` is an estimate for the turn that is not over, and not in
    `tokens`: its output is told only at its end."""

    turns: int = 0
    cost_usd: float = 0.0
    seconds: float = 0.0
    api_seconds: float = 0.0
    tokens: Tokens = Tokens()
    models: Models = {}
    running: Tokens = Tokens()
    launches: list[LaunchUsage] = []


class _Meter(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The launch that is running: what it has told, as far as it must be remembered."""

    launch: str = ""
    turns: int = 0
    seconds: float = 0.0
    api_seconds: float = 0.0
    latest_api: float = 0.0
    told: Tokens = Tokens()
    total: Total = Total()


class _Answer(Struct, frozen=True):
    """The message that an agent is making."""

    id: str
    tokens: Tokens


class UsageState(Struct, kw_only=True, omit_defaults=True):
    #: The last event that is in it.
    seq: int = 0
    meter: _Meter = _Meter()
    #: Launches that are over, and the sum of those no longer listed.
    past: list[LaunchUsage] = []
    older: LaunchUsage = LaunchUsage(launch="")
    #: The turn that is running: what is done of it, and what each agent is at.
    running: Tokens = Tokens()
    answers: dict[str, _Answer] = {}


def fold(state: UsageState, event: stream.Entry | Reading) -> bool:
    """Take in one event, in place; whether it changed what `usage_of` gives."""
    if event.seq <= state.seq:
        return False
    reading = reading_of(event)
    state.seq = reading.seq
    is_other = bool(reading.launch) and reading.launch != state.meter.launch
    if is_other:
        _close(state)
        state.meter = _Meter(launch=reading.launch)
    match reading.said:
        case Assistant() as message if message.message.usage and not message.is_synthetic:
            _estimate(state, message, message.message.usage)
            return True
        case Result() as result:
            state.meter = _metered(state.meter, result)
            state.running, state.answers = Tokens(), {}
            return True
    return is_other


def usage_of(state: UsageState) -> Usage:
    """All of it, as it stands."""
    launches = [*state.past, *([_told(state.meter)] if state.meter.launch else [])]
    models = state.older.models
    for launch in launches:
        models = plus(models, launch.models)
    every = [state.older, *launches]
    return Usage(
        turns=sum(launch.turns for launch in every),
        cost_usd=sum(launch.cost_usd for launch in every),
        seconds=sum(launch.seconds for launch in every),
        api_seconds=sum(launch.api_seconds for launch in every),
        tokens=sum((launch.tokens for launch in every), Tokens()),
        models=models,
        running=sum((answer.tokens for answer in state.answers.values()), state.running),
        launches=launches,
    )


def _close(state: UsageState) -> None:
    """The launch is over. A turn that it did not end is told by nothing but the estimate."""
    if state.meter.launch:
        state.past.append(_told(state.meter))
    state.running, state.answers = Tokens(), {}
    if len(state.past) > MAX_LAUNCHES:
        state.older = _sum(state.older, state.past.pop(0))


def _metered(meter: _Meter, result: Result) -> _Meter:
    total = meter.total.after(result)
    api = result.duration_api_ms / 1000
    grown = api - meter.latest_api if api >= meter.latest_api else api
    if total.carried and not meter.total.has_begun:
        # It has brought along what another process waited; of that, nothing tells how much.
        grown = min(grown, result.duration_ms / 1000)
    return replace(
        meter,
        turns=meter.turns + 1,
        seconds=meter.seconds + result.duration_ms / 1000,
        api_seconds=meter.api_seconds + grown,
        # A slash command says 0, and the next turn goes on from before.
        latest_api=api or meter.latest_api,
        told=meter.told + _tokens(result.usage),
        total=total,
    )


def _told(meter: _Meter) -> LaunchUsage:
    models = meter.total.own_models
    counted = sum((use.tokens for use in models.values()), Tokens())
    return LaunchUsage(
        launch=meter.launch,
        turns=meter.turns,
        cost_usd=meter.total.own,
        seconds=meter.seconds,
        api_seconds=meter.api_seconds,
        tokens=counted if models else meter.told,
        models=models,
    )


def _sum(some: LaunchUsage, other: LaunchUsage) -> LaunchUsage:
    return LaunchUsage(
        launch="",
        turns=some.turns + other.turns,
        cost_usd=some.cost_usd + other.cost_usd,
        seconds=some.seconds + other.seconds,
        api_seconds=some.api_seconds + other.api_seconds,
        tokens=some.tokens + other.tokens,
        models=plus(some.models, other.models),
    )


def _estimate(state: UsageState, message: Assistant, usage: ToldUsage) -> None:
    """An agent makes one message at a time, so a new id says that the one before is whole."""
    agent = message.parent_tool_use_id or ""
    before = state.answers.pop(agent, None)
    if before and before.id != message.message.id:
        state.running += before.tokens
    state.answers[agent] = _Answer(message.message.id, _tokens(usage))
    if len(state.answers) > MAX_AGENTS:
        oldest = next(iter(state.answers))
        state.running += state.answers.pop(oldest).tokens


def _tokens(told: ToldUsage | None) -> Tokens:
    if told is None:
        return Tokens()
    return Tokens(
        told.input_tokens or 0,
        told.output_tokens or 0,
        told.cache_read_input_tokens or 0,
        told.cache_creation_input_tokens or 0,
    )


__all__ = ["LaunchUsage", "ModelUse", "Tokens", "Usage", "UsageState", "fold", "usage_of"]
