"""The fake CLI, with a role for each prompt: children have the command of their parent.

Run by its path, with the folder of `fake_claude.py` first. One step beside the fake's own:

    {"roles": {WORD: STEPS}}   for ever: wait for a prompt, play the steps of the first word in it
"""

from __future__ import annotations

import json
import sys
from typing import Any

sys.path.insert(0, sys.argv.pop(1))

import fake_claude  # type: ignore[import-not-found]


class BranchingClaude(fake_claude.FakeClaude):  # type: ignore[misc]
    """Plays what it is told to be."""

    def do_roles(self, roles: dict[str, list[dict[str, Any]]]) -> None:
        while True:
            self.pump_until(lambda: bool(self.prompts))
            if self.is_starved:
                return
            told = json.dumps(self.prompts.pop(0))
            self.play(next(steps for word, steps in roles.items() if word in told))


def main() -> None:
    with open(fake_claude.option("--scenario")) as file:  # noqa: PTH123
        fake = BranchingClaude(json.load(file), fake_claude.option("--report"))
    if "--version" in sys.argv:
        sys.stdout.write(f"{fake.version} (Claude Code)\n")
        return
    fake.report(argv=sys.argv[1:])
    fake.play(fake.steps)


if __name__ == "__main__":
    main()
