"""CPU per message of decode + route, as a ratio to `json.loads` of the same lines, in one run.

The stream is what a busy session looks like: 70% deltas, 20% assistant messages of 1.6 KB, 10%
tool results of 4 KB. Both sides read the same lines; the best of several rounds counts, because
a noisy machine can only make a round slower.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable

from bridle.protocol.connection import Connection
from bridle.protocol.events import MessageReceived

CHUNK = 64 * 1024
SESSION = "6f1b2c3d-0000-4000-8000-000000000001"


def delta(number: int) -> dict[str, object]:
    text = f"word {number} of the answer"
    event = {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "text_delta", "text": text},
    }
    return {
        "type": "stream_event",
        "event": event,
        "session_id": SESSION,
        "parent_tool_use_id": None,
        "uuid": f"00000000-0000-4000-8000-{number:012d}",
    }


def assistant(number: int) -> dict[str, object]:
    code = "\n".join(f"    value_{line} = compute(value_{line - 1})" for line in range(1, 40))
    block = {
        "type": "tool_use",
        "id": f"toolu_{number}",
        "name": "Edit",
        "input": {"file_path": "src/app.py", "old_string": "pass", "new_string": code[:1150]},
    }
    usage = {"input_tokens": 10, "cache_creation_input_tokens": 0, "output_tokens": 20}
    message = {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5-20250929",
        "content": [block],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    return {
        "type": "assistant",
        "message": message,
        "parent_tool_use_id": None,
        "session_id": SESSION,
        "uuid": f"00000000-0000-4000-8000-{number:012d}",
    }


def tool_result(number: int) -> dict[str, object]:
    output = "\n".join(f"{line:6d}\tdef function_{line}(self) -> None:" for line in range(1, 46))
    block = {"tool_use_id": f"toolu_{number}", "type": "tool_result", "content": output[:1800]}
    return {
        "type": "user",
        "message": {"role": "user", "content": [block]},
        "parent_tool_use_id": None,
        "session_id": SESSION,
        "uuid": f"00000000-0000-4000-8000-{number:012d}",
        "tool_use_result": {"type": "text", "file": {"content": output[:1800], "numLines": 45}},
    }


def stream(messages: int) -> list[bytes]:
    makers = [delta] * 7 + [assistant] * 2 + [tool_result]
    return [
        json.dumps(makers[number % 10](number), separators=(",", ":")).encode()
        for number in range(messages)
    ]


def with_json(lines: list[bytes]) -> int:
    count = 0
    for line in lines:
        json.loads(line)
        count += 1
    return count


def with_bridle(chunks: list[bytes]) -> int:
    connection = Connection(nonce="bench")
    count = 0
    for chunk in chunks:
        for event in connection.receive(chunk):
            if isinstance(event, MessageReceived):
                count += 1
    return count


def cpu(work: Callable[[], int], expected: int) -> float:
    start = time.process_time()
    count = work()
    spent = time.process_time() - start
    if count != expected:
        sys.exit(f"read {count} messages where {expected} were written")
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--most", type=float, default=1.0, help="fail above this ratio")
    options = parser.parse_args()
    lines = stream(options.messages)
    data = b"\n".join(lines) + b"\n"
    chunks = [data[at : at + CHUNK] for at in range(0, len(data), CHUNK)]
    pairs = [
        (cpu(lambda: with_bridle(chunks), len(lines)), cpu(lambda: with_json(lines), len(lines)))
        for _ in range(options.rounds)
    ]
    ours, theirs = (min(side) for side in zip(*pairs, strict=True))
    micro = 1e6 / len(lines)
    print(f"{len(lines)} messages, {len(data) / 1e6:.1f} MB, best of {options.rounds} rounds")
    print(f"bridle decode + route  {ours * micro:6.2f} µs a message")
    print(f"json.loads alone       {theirs * micro:6.2f} µs a message")
    print(f"ratio                  {ours / theirs:6.2f}   (at most {options.most})")
    if ours / theirs > options.most:
        sys.exit(1)


if __name__ == "__main__":
    main()
