"""The fake CLI, wilder: it leaves orphans that nobody can name, and loses words as on a full disk.

Run by its path, with the folder of `fake_claude.py` first. To `initialize` it says, as new CLIs do,
what it still asks and whether a turn runs. Steps beside the fake's own:

    {"orphan": MARK}   a process in its own session, with no parent and no environment
    {"lose": MESSAGE}  a line of which half is written, or "keep" bytes: the next is glued to it
    {"torn": N}        the next N answers to `initialize` are half written too
    {"drip": N}        N lines, 50 a second
    {"flood": N}       N lines, as fast as they can be written, with a number in each
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

sys.path.insert(0, sys.argv.pop(1))

import fake_claude  # type: ignore[import-not-found]

Json = dict[str, Any]


class WildClaude(fake_claude.FakeClaude):  # type: ignore[misc]
    """Plays one scenario."""

    torn = 0
    is_in_turn = False

    def do_init(self, extra: Json) -> None:
        self.is_in_turn = True
        super().do_init(extra)

    def do_result(self, extra: str | Json) -> None:
        self.is_in_turn = False
        super().do_result(extra)

    def write(self, data: bytes) -> None:
        try:
            super().write(data)
        except OSError as error:  # new CLIs live on with a full disk, and the rest is lost
            self.report(lost=str(error))

    def do_drip(self, times: int) -> None:
        for number in range(times):
            self.do_say(f"drop {number}")
            self.pump(0.02)
            if self.eof:
                return

    def do_orphan(self, mark: str) -> None:
        read, write = os.pipe()
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.close(read)
                quiet = os.open(os.devnull, os.O_RDWR)
                for fd in (0, 1, 2):
                    os.dup2(quiet, fd)
                sleep = "import time; time.sleep(600)"
                os.execve(sys.executable, [sys.executable, "-I", "-S", "-c", sleep, mark], {})
            os._exit(0)
        os.close(write)
        os.read(read, 1)
        self.do_say("an orphan")

    def do_lose(self, message: Json) -> None:
        line = json.dumps(message, separators=(",", ":")).encode()
        self.write(line[: self.step.get("keep", len(line) // 2)])
        request = message.get("request")
        if request:
            self.asked[message["request_id"]] = request
        self.is_in_turn = self.is_in_turn and message["type"] != "result"

    def do_torn(self, times: int) -> None:
        self.torn = times

    def do_flood(self, lines: int) -> None:
        for number in range(lines):
            self.do_say(f"line {number} " + "x" * 400)

    def reply(self, id_: str, request: Json) -> None:
        if request["subtype"] != "initialize":
            super().reply(id_, request)
            return
        waits = [name for name in self.asked if name not in self.answers]
        pending = [
            {"type": "control_request", "request_id": name, "request": self.asked[name]}
            for name in waits
        ]
        state = "requires_action" if waits else "running" if self.is_in_turn else "idle"
        body = {"claude_code_version": self.version, "session_state": state}
        response: Json = {"subtype": "success", "request_id": id_, "response": body}
        if pending:
            response["pending_permission_requests"] = pending
        line = json.dumps({"type": "control_response", "response": response}).encode() + b"\n"
        self.write(line[: len(line) // 2] if self.torn else line)
        self.torn = max(0, self.torn - 1)


if __name__ == "__main__":
    fake_claude.FakeClaude = WildClaude
    fake_claude.main()
