"""What a process has used, from totals that grow, start again, or begin with another's.

Owns the arithmetic of `total_cost_usd` and `modelUsage`. What recordings of real CLIs show:

- Both are totals of the process, not of the turn, on all versions: the latest counts, and results
  are never summed. They hold subagents and side calls too.
- After a resume, a continue or a fork, 2.0.75 and 2.1.12 start again at 0; 2.1.325 *goes on from
  the total of the earlier process*. What it brought along is not this launch's. It can be told by
  `model_usage_since_last_result`, which those CLIs give.
- `/clear` starts them again at 0 inside the same process on 2.1.325, and not on older ones.
- 2.0.75 gives an empty `modelUsage` with the result of a slash command, though the total stays.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from ..protocol.messages import ModelUsage, Result

#: Less than any token costs; more than adding up floats can be wrong by.
ALMOST = 1e-9


class Tokens(Struct, frozen=True, omit_defaults=True, gc=False):
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_creation: int = 0

    @property
    def total(self) -> int:
        return self.input + self.output + self.cache_read + self.cache_creation

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_creation + other.cache_creation,
        )

    def __sub__(self, other: Tokens) -> Tokens:
        """Never below nothing."""
        return Tokens(
            max(self.input - other.input, 0),
            max(self.output - other.output, 0),
            max(self.cache_read - other.cache_read, 0),
            max(self.cache_creation - other.cache_creation, 0),
        )


class ModelUse(Struct, frozen=True, omit_defaults=True, gc=False):
    """What was used of one model."""

    tokens: Tokens = Tokens()
    cost_usd: float = 0.0
    searches: int = 0

    def __add__(self, other: ModelUse) -> ModelUse:
        cost = self.cost_usd + other.cost_usd
        return ModelUse(self.tokens + other.tokens, cost, self.searches + other.searches)

    def __sub__(self, other: ModelUse) -> ModelUse:
        cost = self.cost_usd - other.cost_usd
        return ModelUse(
            self.tokens - other.tokens,
            cost if cost > ALMOST else 0.0,
            max(self.searches - other.searches, 0),
        )


Models = dict[str, ModelUse]


class Total(Struct, frozen=True, omit_defaults=True):
    """A total as the CLI tells it. Of it, `carried` came from before: from another process.
    `settled` are this process's totals that have started again since."""

    has_begun: bool = False
    latest: float = 0.0
    carried: float = 0.0
    settled: float = 0.0
    models: Models = {}
    carried_models: Models = {}
    settled_models: Models = {}

    @property
    def own(self) -> float:
        """What this process itself has cost."""
        return self.settled + self.latest - self.carried

    @property
    def own_models(self) -> Models:
        return plus(self.settled_models, minus(self.models, self.carried_models))

    def after(self, result: Result) -> Total:
        since = result.model_usage_since_last_result
        models = {name: _use(told) for name, told in result.model_usage.items()}
        new = None if since is None else {name: _use(told) for name, told in since.items()}
        cost = result.total_cost_usd
        before = self._before(cost, new)
        if not self.has_begun or before < self.latest - ALMOST:
            return self._anew(cost, before, models, new)
        return replace(self, latest=cost, models=models or self.models)

    def _before(self, cost: float, new: Models | None) -> float:
        """What the total must have been when the turn began."""
        if new is not None:
            before = cost - sum(use.cost_usd for use in new.values())
            return before if before > ALMOST else 0.0
        return self.latest if self.has_begun and cost >= self.latest - ALMOST else 0.0

    def _anew(self, cost: float, before: float, models: Models, new: Models | None) -> Total:
        return Total(
            has_begun=True,
            latest=cost,
            carried=before,
            settled=self.own,
            models=models,
            carried_models={} if new is None else minus(models, new),
            settled_models=self.own_models,
        )


def plus(some: Models, others: Models) -> Models:
    return {**some, **{name: some.get(name, ModelUse()) + use for name, use in others.items()}}


def minus(some: Models, others: Models) -> Models:
    left = {name: use - others.get(name, ModelUse()) for name, use in some.items()}
    return {name: use for name, use in left.items() if use != ModelUse()}


def _use(told: ModelUsage) -> ModelUse:
    tokens = Tokens(
        told.input_tokens,
        told.output_tokens,
        told.cache_read_input_tokens,
        told.cache_creation_input_tokens,
    )
    return ModelUse(tokens, told.cost_usd, told.web_search_requests)
