"""The fake CLI, with a role for each prompt: children have the command of their parent.

Run by its path, with the folder of `fake_claude.py` first. Steps beside the fake's own:

    {"roles": {WORD: STEPS}}   for ever: wait for a prompt, play the steps of the first word in it
    {"family": NAMES}          run children with these names as a model would: create them, tell
                               them to work, approve what they ask, and say what came of each
"""

from __future__ import annotations

import json
import os
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

    def tool(self, name: str, /, **arguments: Any) -> Any:
        """Call one of our tools; its result."""
        self.step = {"id": f"call-{len(self.asked)}"}
        params = {"name": name, "arguments": arguments}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        self.do_mcp({"server_name": "bridle", "message": message})
        answer = self.answers[self.step["id"]]["response"]["mcp_response"]["result"]
        given = json.loads(answer["content"][0]["text"])
        if answer["isError"]:
            fake_claude.fatal(f"{name}: {given}", 4)
        return given

    def do_family(self, names: list[str]) -> None:
        where = self.session_id = os.urandom(8).hex()
        names = [f"{name}-{where}" for name in names]
        here = os.getcwd()  # noqa: PTH109
        ids = [
            self.tool("claudecode_create", name=name, working_dir=here, policy="ask")["id"]
            for name in names
        ]
        for session in ids:
            self.tool("claudecode_chat_async", session_id=session, prompt="work")
        left, seen = set(ids), dict.fromkeys(ids, 0)
        while left:
            given = self.tool("claudecode_poll", session_ids=ids, until="approval", wait_ms=60000)
            for one in given["sessions"]:
                for number, event in enumerate(one["events"], seen[one["session_id"]]):
                    if event["seq"] != number:
                        fake_claude.fatal(f"{event['seq']} came where {number} was to come", 5)
                seen[one["session_id"]] += len(one["events"])
                for asked in one["pending_approvals"]:
                    self.tool("loopback_respond", approval_id=asked["id"], approve=True)
                if one["status"] == "complete" and not one["has_more"]:
                    left.discard(one["session_id"])
        results = [self.tool("claudecode_result", session_id=one)["result"] for one in ids]
        self.do_result(" ".join(results))


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
