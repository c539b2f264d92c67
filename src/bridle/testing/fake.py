"""A fake CLI for a test: writes the scenario down, gives the command, reads the report."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from ..errors import InvalidScript
from . import fake_claude
from .scenario import mistake_in


class FakeCli:
    """`FakeCli([{"prompt": True}, {"say": "Hi."}, {"result": "Hi."}], folder).command` is a CLI.

    A scenario with a mistake in it is refused here, before anything runs.
    """

    def __init__(
        self, steps: Sequence[dict[str, Any]], folder: Path, name: str = "fake", **settings: Any
    ) -> None:
        scenario = {"steps": list(steps), **settings}
        wrong = mistake_in(scenario)
        if wrong:
            raise InvalidScript(wrong)
        folder.mkdir(parents=True, exist_ok=True)
        self._report = folder / f"{name}.report.ndjson"
        path = folder / f"{name}.scenario.json"
        path.write_bytes(msgspec.json.encode(scenario))
        # By path and isolated: nothing but the standard library is imported.
        program = [sys.executable, "-I", "-S", str(fake_claude.__file__)]
        self.command = [*program, "--scenario", str(path), "--report", str(self._report)]

    def report(self) -> list[dict[str, Any]]:
        """What the fake was told and did, in order; it may still be writing."""
        if not self._report.exists():
            return []
        lines = self._report.read_bytes().split(b"\n")[:-1]
        return [msgspec.json.decode(line) for line in lines]

    def told(self) -> list[dict[str, Any]]:
        """Every message that the controller has written."""
        return [entry["told"] for entry in self.report() if "told" in entry]

    def answer_to(self, request_id: str) -> dict[str, Any] | None:
        """What the controller answered to one of the fake's requests."""
        for message in self.told():
            response = message.get("response", {})
            if message["type"] == "control_response" and response["request_id"] == request_id:
                return dict(response)
        return None
