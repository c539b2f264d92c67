"""Judging tool calls by a policy of 100 rules, in µs, beside a loop that is always the same.

The loop (sha256 of 1 KB and a dict of 100 words made and sorted) takes as long as the machine is
slow at that moment: read the ratios.
"""

from __future__ import annotations

import hashlib
import json
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from figures import arguments
from msgspec import Struct, structs

from bridle.policy import Call, Judge, Policy
from bridle.policy.shell import programs
from bridle.session.ground import ground_of

HEAD = """\
# Judging

Written by `make bench`: one judgement by a policy of 100 rules, with its look at the disk for
symbolic links, the median of the rounds; and its ratio to a loop that is always the same, timed
beside it. "Again" is the same command as shortly before, whose reading is kept. Python {} on {}.
The loop took {:.0f} µs.

"""
HERE = Path(__file__).resolve().parent

CALLS = {
    "Read": Call("Read", {"file_path": "src/app/main.py"}),
    "Edit in the folder": Call("Edit", {"file_path": "src/app/main.py", "old_string": "a"}),
    "Write outside of it": Call("Write", {"file_path": "/var/tmp/x", "content": "x" * 5_000}),
    "TodoWrite": Call("TodoWrite", {"todos": []}),
    "WebFetch": Call("WebFetch", {"url": "https://docs.example.com/a", "prompt": "what?"}),
    "an MCP tool": Call("mcp__github__list_issues", {"owner": "me"}),
    "git status": Call("Bash", {"command": "git status"}),
    "npm run test": Call("Bash", {"command": "npm run test -- --watch=false"}),
    "cd, test and tail": Call("Bash", {"command": "cd src && npm run test 2>&1 | tail -50"}),
    "a commit": Call(
        "Bash", {"command": 'git add -A && git commit -m "Mend the parser\n\nIt failed."'}
    ),
    "find and grep": Call(
        "Bash", {"command": "find . -name '*.py' -not -path './.venv/*' | xargs grep -n foo"}
    ),
    "a heredoc of 100 lines": Call(
        "Bash", {"command": "cat <<'END' > src/x.txt\n" + "some text\n" * 100 + "END"}
    ),
    "a loop": Call("Bash", {"command": 'for f in src/*.py; do wc -l "$f"; done | sort -n'}),
    "an unreadable one": Call("Bash", {"command": 'eval "$(cat setup.sh)"'}),
}


class Measured(Struct):
    """`again`: the same command as shortly before, whose reading is kept."""

    call: str
    verdict: str
    us: float
    ratio: float
    again_us: float


def policy() -> Policy:
    """A hundred rules, as a team might have gathered them."""
    allow = [
        *(f"Bash(npm run task-{n}:*)" for n in range(30)),
        *(f"Bash(make target-{n})" for n in range(20)),
        *("Bash(npm run test:*)", "Bash(git status)", "Bash(git diff *)", "Bash(git add:*)"),
        *("Bash(git commit:*)", "Bash(tail:*)", "Bash(wc:*)", "Bash(sort:*)", "Bash(find:*)"),
        *(
            "Bash(grep:*)",
            "Bash(cat:*)",
            "Edit(/src/**)",
            "mcp__github",
            "WebFetch(domain:docs.example.com)",
        ),
        *(f"mcp__server{n}__tool" for n in range(10)),
        *(f"WebFetch(domain:site{n}.example.com)" for n in range(5)),
    ]
    deny = [
        *(
            "Bash(rm:*)",
            "Bash(curl:*)",
            "Read(./secrets/**)",
            "Read(~/.ssh/**)",
            "Edit(/vendor/**)",
        ),
        *(f"Bash(tool-{n}:*)" for n in range(8)),
    ]
    ask = ["Bash(git push:*)", *(f"Bash(deploy-{n}:*)" for n in range(7))]
    made = Policy("ask", allow=allow, ask=ask, deny=deny)
    assert len(made.rules) == 100, len(made.rules)
    return made


def calibration() -> None:
    hashlib.sha256(b"x" * 1024).hexdigest()
    sorted({f"word{n}": n for n in range(100)})


def timed(work: Callable[[], object], count: int) -> float:
    """Microseconds for one, the least of five tries."""
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(count):
            work()
        best = min(best, time.perf_counter() - start)
    return best / count * 1e6


def measure(judge: Judge, rounds: int, only: str) -> list[Measured]:
    found = []
    for name, call in CALLS.items():
        if only not in name:
            continue

        def first(call: Call = call) -> None:
            programs._kept.cache_clear()  # noqa: SLF001 - as if it had never been seen
            judge.judge(call)

        def again(call: Call = call) -> None:
            judge.judge(call)

        pairs = [
            (timed(first, 300), timed(calibration, 300), timed(again, 300)) for _ in range(rounds)
        ]
        us, again_us = (statistics.median(pair[at] for pair in pairs) for at in (0, 2))
        ratio = statistics.median(ours / loop for ours, loop, _ in pairs)
        verdict = str(judge.judge(call).__struct_config__.tag)
        found.append(Measured(name, verdict, round(us, 1), round(ratio, 2), round(again_us, 1)))
    return found


def main() -> None:
    options = arguments(__doc__ or "", "policy")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "src/app").mkdir(parents=True)
        (Path(folder) / "src/app/main.py").touch()
        judge = policy().on(ground_of(Path(folder).resolve()))
        found = measure(judge, options.rounds, options.only)
        loop = timed(calibration, 1_000)
    lines = [
        f"| {one.call} | {one.verdict} | {one.us} µs | {one.ratio} | {one.again_us} µs |"
        for one in found
    ]
    text = "\n".join(
        ("| call | verdict | time | to the loop | again |", "|---|---|---|---|---|", *lines)
    )
    print(text)
    print(f"the loop: {loop:.1f} µs")
    if options.write:
        head = HEAD.format(platform.python_version(), platform.system(), loop)
        (HERE / "policy.md").write_text(head + text + "\n")
        body = {
            "python": sys.version,
            "loop_us": loop,
            "rows": [structs.asdict(one) for one in found],
        }
        (HERE / "policy.json").write_text(json.dumps(body, indent=1) + "\n")


if __name__ == "__main__":
    main()
