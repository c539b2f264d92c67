"""One measurement of one side, in a process of its own; prints JSON.

    python bench/measure.py bridle|sdk WORK OPTIONS-AS-JSON

Owns what each side does for each kind of work; `compare.py` runs both and compares.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from figures import percentiles, rss_kb

Options = dict[str, Any]


def threads() -> int:
    return len(os.listdir("/proc/self/task"))  # noqa: PTH208


def _policy(options: Options) -> Any:
    """Every session has a gate; this one with as many rules as a team might gather."""
    if options.get("policy") != "100 rules":
        return "ask"
    from policy import policy

    return policy()


class Bridle:
    """Ours."""

    def load(self) -> None:
        import bridle

        # Names are loaded when they are used: use what a session uses.
        _ = bridle.connect, bridle.Session, bridle.Allow, bridle.Turn

    @asynccontextmanager
    async def session(self, options: Options, approver: str = "async") -> AsyncIterator[Any]:
        import bridle

        async def later(_: object) -> bridle.Allow:
            return bridle.Allow()

        approve = later if approver == "async" else lambda _: bridle.Allow()
        env = {"BENCH_PLAN": json.dumps(options["plan"])}
        async with bridle.connect(
            command=[options["cli"]], env=env, approver=approve, policy=_policy(options)
        ) as session:
            yield session

    async def turn(self, session: Any) -> tuple[int, str]:
        count, turn = 0, await session.send("go")
        async for _ in turn:
            count += 1
        return count, (await turn.result()).text


class Sdk:
    """The official one."""

    def load(self) -> None:
        import claude_agent_sdk

        _ = claude_agent_sdk.ClaudeSDKClient

    @asynccontextmanager
    async def session(self, options: Options, approver: str = "async") -> AsyncIterator[Any]:
        from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, PermissionResultAllow

        async def allow(*_: object) -> PermissionResultAllow:
            return PermissionResultAllow()

        del approver  # it takes async ones only
        settings = ClaudeAgentOptions(
            cli_path=options["cli"],
            env={"BENCH_PLAN": json.dumps(options["plan"])},
            can_use_tool=allow,
            include_partial_messages=True,
            max_buffer_size=options.get("line_limit"),
        )
        async with ClaudeSDKClient(settings) as client:
            yield client

    async def turn(self, session: Any) -> tuple[int, str]:
        from claude_agent_sdk import ResultMessage

        count, text = 0, ""
        await session.query("go")
        async for message in session.receive_response():
            count += 1
            if isinstance(message, ResultMessage):
                text = message.result or ""
        return count, text


SIDES: dict[str, Callable[[], Any]] = {"bridle": Bridle, "sdk": Sdk}


def import_cpu(side: Any, _: Options) -> dict[str, float]:
    start = time.process_time()
    side.load()
    return {"cpu_ms": (time.process_time() - start) * 1e3}


async def stream_cpu(side: Any, options: Options) -> dict[str, float]:
    """CPU of the controller alone, from the prompt to the result."""
    async with side.session(options) as session:
        start = time.process_time()
        count, _ = await side.turn(session)
        spent = time.process_time() - start
    if count != options["messages"] + 1:
        sys.exit(f"saw {count} messages where {options['messages'] + 1} were written")
    return {"cpu_us_per_message": spent * 1e6 / options["messages"], "cpu_s": spent}


async def approval_times(side: Any, options: Options) -> dict[str, float]:
    """As the CLI sees them: from writing the question to having read the answer."""
    async with side.session(options, options["approver"]) as session:
        _, text = await side.turn(session)
    return percentiles(json.loads(text))


async def approvals_beside_stream(side: Any, options: Options) -> dict[str, float]:
    """Approvals of one session while another one, in the same process, is loud."""
    loud = {**options, "plan": options["loud_plan"]}
    async with side.session(options) as asking, side.session(loud) as talking:
        streaming = asyncio.ensure_future(side.turn(talking))
        _, text = await side.turn(asking)
        is_over = streaming.done()
        streaming.cancel()
        await asyncio.wait([streaming])
    if is_over:
        sys.exit("the loud session was over before the approvals were")
    return percentiles(json.loads(text))


async def idle_sessions(side: Any, options: Options) -> dict[str, float]:
    """Memory after import and one session; then of each further one; and the threads of all."""
    opened = []
    try:
        opened.append(side.session(options))
        await opened[0].__aenter__()
        gc.collect()
        first = rss_kb()
        for _ in range(options["sessions"] - 1):
            opened.append(side.session(options))
            await opened[-1].__aenter__()
        gc.collect()
        each = (rss_kb() - first) / (options["sessions"] - 1)
        counted = threads()
    finally:
        await asyncio.gather(*(one.__aexit__(None, None, None) for one in opened))
    return {"first_mb": first / 1024, "each_kb": each, "threads": counted}


async def start_many(side: Any, options: Options) -> dict[str, float]:
    """How long a session takes to be ready when all start at once."""
    times: list[float] = []
    ready = asyncio.Event()

    async def one() -> None:
        start = time.perf_counter()
        async with side.session(options):
            times.append((time.perf_counter() - start) * 1e6)
            if len(times) == options["sessions"]:
                ready.set()
            await ready.wait()

    start = time.process_time()
    await asyncio.gather(*(one() for _ in range(options["sessions"])))
    return {**percentiles(times), "cpu_s": time.process_time() - start}


WORK: dict[str, Callable[[Any, Options], Any]] = {
    "import": import_cpu,
    "stream": stream_cpu,
    "approvals": approval_times,
    "beside": approvals_beside_stream,
    "idle": idle_sessions,
    "start": start_many,
}


def main() -> None:
    side, work, options = SIDES[sys.argv[1]](), WORK[sys.argv[2]], json.loads(sys.argv[3])
    if options.get("core") is not None:
        os.sched_setaffinity(0, {options["core"]})
    if work is not import_cpu:
        side.load()
    found = work(side, options)
    print(json.dumps(found if isinstance(found, dict) else asyncio.run(found)))


if __name__ == "__main__":
    main()
