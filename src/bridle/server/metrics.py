"""Numbers for Prometheus: agents, approvals, the log, what was used, and the requests that came.

Owns what is counted while the server runs (requests, and how approvals ended); all else is looked
at when somebody asks.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter as Counts
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, get_args

from litestar.types import ASGIApp, Message, Receive, Scope, Send
from msgspec import Struct
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from ..approvals.model import Approval, Status
from ..supervisor import State, Supervisor
from ..views import Tokens

if TYPE_CHECKING:
    from .house import House

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
#: In seconds: most answers take a few milliseconds, a stop up to 12 s.
BUCKETS = (0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 12.0)
METHODS = ("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH")


class Seen(Struct, frozen=True, kw_only=True):
    """The present, as it was looked at."""

    states: dict[State, int]
    running: int
    pending: int
    oldest_pending: float
    events: int
    turns: int
    cost_usd: float
    tokens: Tokens
    journal_bytes: int
    disk_free: int
    listeners: int
    uptime: float
    is_held: bool
    is_stuck: bool


class Metrics:
    """One for each house, with a registry of its own."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self._requests = Counter(
            "bridle_http_requests",
            "Requests that were answered.",
            ("route", "method", "status"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "bridle_http_seconds",
            "How long it took until an answer began.",
            ("route", "method"),
            buckets=BUCKETS,
            registry=self._registry,
        )
        self._ended = Counter(
            "bridle_approvals_ended",
            "Approvals that ended since the server was started, by how.",
            ("status",),
            registry=self._registry,
        )
        for status in get_args(Status):
            if status != "pending":
                self._ended.labels(status)
        self._present = _Present()
        self._registry.register(self._present)

    def text(self, seen: Seen) -> bytes:
        self._present.seen = seen
        return generate_latest(self._registry)

    def count(self, ended: Approval) -> None:
        self._ended.labels(ended.status).inc()

    def count_request(self, route: str, method: str, status: int, seconds: float) -> None:
        known = method if method in METHODS else "other"
        self._requests.labels(route, known, status).inc()
        self._seconds.labels(route, known).observe(seconds)


def counted(app: ASGIApp) -> ASGIApp:
    """A middleware of the application: each request by the template of its route."""

    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        begun = time.perf_counter()
        route = str(scope.get("path_template", "")) or "none"
        method = str(scope.get("method", ""))
        metrics: Metrics = scope["state"]["house"].metrics

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                took = time.perf_counter() - begun
                metrics.count_request(route, method, message["status"], took)
            await send(message)

        await app(scope, receive, sent)

    return call


class _Present(Collector):
    """What is looked at when somebody asks."""

    def __init__(self) -> None:
        self.seen: Seen | None = None

    def collect(self) -> Iterable[Metric]:
        seen = self.seen
        if seen is None:
            return
        yield _labelled("bridle_sessions", "Sessions by state.", "state", _all_states(seen))
        yield _gauge("bridle_agents_running", "Agents whose process lives.", seen.running)
        yield _gauge("bridle_approvals_pending", "Approvals that wait.", seen.pending)
        yield _gauge(
            "bridle_approvals_oldest_pending_seconds",
            "How long the oldest of them has waited.",
            seen.oldest_pending,
        )
        yield _gauge("bridle_events", "Events in the log.", seen.events)
        yield _gauge("bridle_turns", "Turns of the sessions that there are.", seen.turns)
        yield _gauge("bridle_cost_usd", "What they have cost, in dollars.", seen.cost_usd)
        tokens = {
            "input": seen.tokens.input,
            "output": seen.tokens.output,
            "cache_read": seen.tokens.cache_read,
            "cache_creation": seen.tokens.cache_creation,
        }
        yield _labelled("bridle_tokens", "Tokens that they have used.", "kind", tokens)
        yield _gauge("bridle_journal_bytes", "Size of the log.", seen.journal_bytes)
        yield _gauge("bridle_disk_free_bytes", "Free space where it is.", seen.disk_free)
        yield _gauge("bridle_listeners", "Clients that follow a stream.", seen.listeners)
        yield _gauge("bridle_uptime_seconds", "Since the server was started.", seen.uptime)
        yield _gauge("bridle_held", "Whether all agents are held back.", seen.is_held)
        yield _gauge("bridle_stuck", "Whether the log can't be written.", seen.is_stuck)


def _gauge(name: str, words: str, value: float) -> Metric:
    return GaugeMetricFamily(name, words, value=float(value))


def _labelled(name: str, words: str, label: str, values: dict[str, int]) -> Metric:
    family = GaugeMetricFamily(name, words, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family


def _all_states(seen: Seen) -> dict[str, int]:
    """Also those that no session is in: who draws a line needs its zeros."""
    return {state: seen.states.get(state, 0) for state in get_args(State)}


async def look(house: House) -> Seen:
    """At the present."""
    supervisor, now = house.supervisor, house.now()
    records = supervisor.list()
    pending = await supervisor.approvals.list(status="pending")
    streams = await supervisor.journal.log.streams()
    return Seen(
        states=dict(Counts(record.state for record in records)),
        running=supervisor.running,
        pending=len(pending),
        oldest_pending=max((now - approval.created for approval in pending), default=0.0),
        events=sum(info.last_seq - info.first_seq + 1 for info in streams),
        turns=sum(record.turns for record in records),
        cost_usd=sum(record.cost_usd for record in records),
        tokens=sum((record.usage.tokens for record in records), Tokens()),
        journal_bytes=await asyncio.to_thread(house.journal_size),
        disk_free=house.disk_free(),
        listeners=len(house.streams.audience),
        uptime=max(now - house.started_at, 0.0),
        is_held=supervisor.held is not None,
        is_stuck=supervisor.is_stuck,
    )


@asynccontextmanager
async def open_metrics(supervisor: Supervisor) -> AsyncIterator[Metrics]:
    """While it is open, it hears of approvals that end."""
    metrics = Metrics()
    if supervisor.is_asleep:
        yield metrics
        return
    hearing = asyncio.ensure_future(_hear(supervisor, metrics.count))
    try:
        yield metrics
    finally:
        hearing.cancel()
        await asyncio.wait([hearing])


async def _hear(supervisor: Supervisor, count: Callable[[Approval], None]) -> None:
    is_first, counted = True, set[str]()
    async for changes in supervisor.approvals.watch():
        for approval in changes:
            if approval.status == "pending":
                continue
            if approval.id not in counted and not is_first:
                count(approval)
            counted.add(approval.id)
            if approval.is_finished:  # nothing more comes of it
                counted.discard(approval.id)
        is_first = False
