"""A fake CLI that costs as little as it can, so that what is measured is the controller.

Plays what BENCH_PLAN says (JSON: {"mode": …, …}) for each prompt:

    stream     write the lines of a file, all at once or `rate` of them each second
    approvals  ask `count` permissions one after another; the result holds their times in µs
    idle       answer requests and wait

Standard library alone, started with `python -ISE`.
"""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` is not imported at run time: it would take longer than the rest.
    from typing import Any

READ_SIZE = 1 << 16
PLAN: dict[str, Any] = {}


def write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


class Input:
    """Lines of stdin."""

    def __init__(self) -> None:
        self.buffer = b""

    def line(self) -> bytes:
        while b"\n" not in self.buffer:
            data = os.read(0, READ_SIZE)
            if not data:
                sys.exit(0)
            self.buffer += data
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line


def result(text: str) -> None:
    import json

    body = {"type": "result", "subtype": "success", "is_error": False, "result": text}
    more = {"duration_ms": 1, "duration_api_ms": 1, "num_turns": 1, "session_id": "s"}
    write(json.dumps({**body, **more, "total_cost_usd": 0.0, "usage": {}}).encode() + b"\n")


def stream() -> None:
    with open(PLAN["file"], "rb") as file:
        data = file.read()
    rate = PLAN.get("rate")
    if not rate:
        write(data)
        return
    lines = data.splitlines(keepends=True)
    step = max(1, rate // 200)
    start = time.perf_counter()
    for at in range(0, len(lines), step):
        write(b"".join(lines[at : at + step]))
        ahead = start + (at + step) / rate - time.perf_counter()
        if ahead > 0:
            time.sleep(ahead)


ASK = (
    b'{"type":"control_request","request_id":"ask-%d","request":{"subtype":"can_use_tool",'
    b'"tool_name":"Bash","input":{"command":"git status --short","description":"Look"},'
    b'"tool_use_id":"toolu_%d","permission_suggestions":[]}}\n'
)


def approvals() -> str:
    import json

    times = []
    gap = PLAN.get("gap", 0)
    clock, read, tell = time.perf_counter, os.read, os.write
    for question in [ASK % (number, number) for number in range(PLAN["count"])]:
        start = clock()
        tell(1, question)
        answer = read(0, READ_SIZE)
        end = clock()
        if not answer.endswith(b"\n") or b'"allow"' not in answer:
            sys.exit(f"not one whole allow: {answer[:200]!r}")
        times.append((end - start) * 1e6)
        if gap:
            time.sleep(gap)
    return json.dumps(times)


def main() -> None:
    if "-v" in sys.argv or "--version" in sys.argv:
        write(b"2.1.325 (Claude Code)\n")
        return
    cores = os.environ.get("BENCH_CHILD_CORE")
    if cores:
        os.sched_setaffinity(0, {int(cores)})
    stdin = Input()
    while True:
        line = stdin.line()
        if b'"control_request"' in line:
            at = line.index(b'"request_id"')
            id_ = line[at:].split(b'"')[3]
            reply = b'{"type":"control_response","response":{"subtype":"success","request_id":"'
            write(reply + id_ + b'","response":{}}}\n')
            if b"end_session" in line:
                return
        elif b'"type":"user"' in line or b'"type": "user"' in line:
            import json

            PLAN.update(json.loads(os.environ["BENCH_PLAN"]))
            if PLAN["mode"] == "approvals":
                result(approvals())
            else:
                stream()
                result("done")


main()
