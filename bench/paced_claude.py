"""A fake CLI that speaks at a steady pace and asks now and then, for many of them at a time.

For the first prompt, as BENCH_PLAN (JSON) says: `seconds` long, `rate` messages a second, each with
the time at which it was written (`time.monotonic_ns`), and every `ask_every` seconds a permission;
the result holds the microseconds until each answer. Then it waits. Standard library alone.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PLAN: dict[str, Any] = json.loads(os.environ["BENCH_PLAN"])
SESSION = "00000000-0000-4000-8000-000000000000"


def say(message: dict[str, Any]) -> None:
    os.write(1, json.dumps({**message, "session_id": SESSION}).encode() + b"\n")


def speak(text: str) -> None:
    inner = {"id": "m", "role": "assistant", "model": "fake", "stop_reason": None}
    usage = {"input_tokens": 1, "output_tokens": 1}
    block = {"type": "text", "text": text}
    say(
        {"type": "assistant", "uuid": "u", "message": {**inner, "usage": usage, "content": [block]}}
    )


class Paced:
    """One agent."""

    def __init__(self) -> None:
        self.buffer = b""
        self.is_prompted = False
        self.asked = 0.0
        self.number = 0
        self.waits: list[float] = []

    def listen(self, seconds: float | None) -> None:
        if not select.select([0], [], [], seconds)[0]:
            return
        data = os.read(0, 1 << 16)
        if not data:
            sys.exit(0)
        *lines, self.buffer = (self.buffer + data).split(b"\n")
        for line in lines:
            self.told(json.loads(line))

    def told(self, message: dict[str, Any]) -> None:
        if message["type"] == "user":
            self.is_prompted = True
        elif message["type"] == "control_response":
            self.waits.append((time.monotonic() - self.asked) * 1e6)
            self.asked = 0.0
        elif message["type"] == "control_request":
            body = {"subtype": "success", "request_id": message["request_id"], "response": {}}
            say({"type": "control_response", "response": body})
            if message["request"]["subtype"] == "end_session":
                sys.exit(0)

    def ask(self) -> None:
        self.number += 1
        call = f"toolu_{os.getpid()}_{self.number}"
        request: dict[str, Any] = {"subtype": "can_use_tool", "tool_name": "Bash"}
        request |= {"tool_use_id": call, "input": {"command": "make deploy"}}
        self.asked = time.monotonic()
        say({"type": "control_request", "request_id": call, "request": request})

    def work(self) -> None:
        say({"type": "system", "subtype": "init", "cwd": "/", "model": "fake", "tools": []})
        end = time.monotonic() + PLAN["seconds"]
        step = 1 / PLAN["rate"]
        # Not all at the same moment: no two agents are so alike.
        phase = (os.getpid() * 0.618) % 1
        spoken = time.monotonic() + phase * step
        asked = time.monotonic() + phase * PLAN["ask_every"]
        while (now := time.monotonic()) < end:
            if now >= spoken:
                speak(f"{time.monotonic_ns()} " + "x" * 400)
                spoken += step
            if PLAN["ask_every"] and now >= asked and not self.asked:
                self.ask()
                asked += PLAN["ask_every"]
            self.listen(max(0.0, spoken - time.monotonic()))
        while self.asked:
            self.listen(None)
        done = {"subtype": "success", "is_error": False, "num_turns": 1, "duration_ms": 1}
        say({"type": "result", **done, "result": json.dumps(self.waits), "total_cost_usd": 0.0})


if __name__ == "__main__":
    agent = Paced()
    while True:
        agent.listen(None)
        if agent.is_prompted:
            agent.is_prompted = False
            agent.work()
