"""A program that asks and decides until it is killed: `python -m tests.approvals.crashing`.

Says on its output what it was told is stored: one line for each. With `at-once` it kills itself
after the first decision, before the record of it can be written.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from bridle.approvals import Always, Approvals, Approve, Outcome, Person, Reject, open_approvals
from bridle.journal import open_journal

from .helpers import a_rule, request


def say(*words: str) -> None:
    os.write(1, " ".join(words).encode() + b"\n")  # short: a pipe takes it whole


async def main(home: Path, tag: str, is_at_once: bool) -> None:
    async with (
        open_journal(home) as journal,
        open_approvals(journal, check=a_rule) as approvals,
    ):
        say("opened", "-")
        if is_at_once:
            await _once(approvals, tag)
        await asyncio.gather(*(_go_on(approvals, f"{tag}-{number}") for number in range(4)))


async def _once(approvals: Approvals, tag: str) -> None:
    asked = await approvals.open(request(tool_use_id=f"{tag}-once"))
    choice = Approve(remember=Always("Bash(make test)"))
    await approvals.decide(asked.id, choice, by=Person("ann"))
    say("allowed", asked.id)
    os.kill(os.getpid(), signal.SIGKILL)


async def _go_on(approvals: Approvals, tag: str) -> None:
    number = 0
    while True:
        number += 1
        asked = await approvals.open(request(session=tag[-1], tool_use_id=f"{tag}-{number}"))
        say("pending", asked.id)
        if number % 4 == 0:
            continue
        if number % 4 == 1:
            await approvals.cancel(asked.id)
            say("cancelled", asked.id)
            continue
        choice = Approve() if number % 4 == 2 else Reject()
        decided = await approvals.decide(asked.id, choice, by=Person("ann"))
        say(decided.status, asked.id)
        approvals.delivered(asked.id)
        approvals.outcome(asked.id, Outcome("ran", 1.0))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], "at-once" in sys.argv))
