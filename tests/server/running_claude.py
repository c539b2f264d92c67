"""The fake CLI, as one that runs programs: what an agent's tools do, and what a hostile one does.

Run by its path, with the folder of `fake_claude.py` first. The step beside the fake's own:

    {"run": [WORD, …]}   run it to its end, as a tool does
    {"run": …, "how": "no environment"}
    {"run": …, "how": "orphan"}   in its own session, with no parent and no environment
"""

from __future__ import annotations

import os
import sys

sys.path.insert(0, sys.argv.pop(1))

import fake_claude  # type: ignore[import-not-found]


class RunningClaude(fake_claude.FakeClaude):  # type: ignore[misc]
    """Plays one scenario."""

    def do_run(self, words: list[str]) -> None:
        how = self.step.get("how", "child")
        pid = os.fork()
        if pid:
            os.waitpid(pid, 0)
            return
        if how == "orphan":
            os.setsid()
            if os.fork():
                os._exit(0)
        try:
            os.execve(words[0], words, dict(os.environ) if how == "child" else {})
        finally:
            os._exit(127)


if __name__ == "__main__":
    fake_claude.FakeClaude = RunningClaude
    fake_claude.main()
