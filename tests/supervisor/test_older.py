"""An agent that the first Bridle with a supervisor has started is still understood.

What that one wrote is here as it wrote it: its shim (`older/shim_1.py`), its spool and its stream,
in words and not by today's code. Never adapt these to a change: adapt the change to these.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bridle.approvals import Approve, Person
from bridle.journal import NewEvent, open_journal
from bridle.process.census import see
from bridle.process.wake import open_wakes
from bridle.supervisor import open_supervisor
from bridle.testing import FakeCli

ADA = Person("ada", "test")
SESSION = "d79c85f4-7a0f-48fa-abc2-294eff8d431f"
LAUNCH = "d11fa56e6b2e55f8"
PROMPT = "37d64680-cc46-4a10-a123-e64df7f9e66d"
POLICY = '["ask",true,[]]'
DIGEST = hashlib.sha256(POLICY.encode()).hexdigest()

HELLO = (
    '{"type":"control_request","request_id":"req_1_e1b2a202","request":{"subtype":"initialize",'
    '"hooks":{"PreToolUse":[{"hookCallbackIds":["bridle-gate"],"timeout":2147483.0}]}}}'
)
TOLD = (
    '{"type":"user","message":{"content":"go","role":"user"},"session_id":"",'
    f'"parent_tool_use_id":null,"uuid":"{PROMPT}"}}'
)

STEPS: list[dict[str, Any]] = [
    {"prompt": True},
    {"init": {}},
    {"say": "one"},
    {"hook": {"tool_name": "Write", "tool_input": {"file_path": "a"}, "tool_use_id": "t0"}},
    {
        "ask": {"tool_name": "Bash", "input": {"command": "rm x"}, "tool_use_id": "t1"},
        "id": "ask-1",
    },
    {"say": "two"},
    {"result": "done"},
    {"prompt": "more"},
    {"say": "three"},
    {"result": "done again"},
    {"prompt": True},
]


class OldLaunch:
    """A spool as the first version made it, with its shim at work."""

    def __init__(self, home: Path, work: Path, command: list[str]) -> None:
        self.spool = home / "spool" / LAUNCH
        self.spool.mkdir(parents=True, mode=0o700)
        for name in ("lock", "inbox", "stdout", "stderr"):
            (self.spool / name).touch(0o600)
        os.mkfifo(self.spool / "doorbell", 0o600)
        shim = Path(__file__).parent / "older" / "shim_1.py"
        arguments = [sys.executable, "-I", "-S", str(shim), str(self.spool), "--", *command]
        env = {**os.environ, "BRIDLE_LAUNCH": LAUNCH}
        self.process = subprocess.Popen(arguments, cwd=work, env=env, start_new_session=True)

    def tell(self, line: str) -> None:
        with (self.spool / "inbox").open("ab") as inbox:
            inbox.write(line.encode() + b"\n")
        bell = os.open(self.spool / "doorbell", os.O_WRONLY | os.O_NONBLOCK)
        os.write(bell, b"\n")
        os.close(bell)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait for a change of the spool after which this holds."""
        changed = asyncio.Event()
        wakes = await open_wakes(self.spool.parent)
        watch = wakes.watch(self.spool, lambda _: changed.set())
        try:
            async with asyncio.timeout(20):
                while not holds():
                    await changed.wait()
                    changed.clear()
        finally:
            watch.close()
            wakes.close()

    def said(self) -> list[str]:
        return (self.spool / "stdout").read_text().splitlines()

    def end(self) -> None:
        self.process.kill()
        self.process.wait(10)


@pytest.fixture
def old(tmp_path: Path, fake_cli: Callable[..., FakeCli]) -> Iterator[OldLaunch]:
    (tmp_path / "work").mkdir()
    launch = OldLaunch(tmp_path / "home", tmp_path / "work", fake_cli(STEPS).command)
    yield launch
    launch.end()


def stream_of(old: OldLaunch, folder: Path) -> list[tuple[str, str]]:
    """The events that the first version had written when it was killed."""
    pid, born, boot = (old.spool / "shim").read_text().split()
    answered, init, one, hook = old.said()[:4]
    end = sum(len(line) + 1 for line in (answered,))
    later = end + sum(len(line) + 1 for line in (init, one))
    of = f'"launch":"{LAUNCH}"'
    hello = '"what":"request","id":"req_1_e1b2a202","type":"initialize"'
    place = f'"name":"old","folder":"{folder}/work","at":2.0,"spec":{{}},"policy":"{DIGEST}"'
    homes = f'{{"home":"{folder}","claude_home":"","bridle_home":"{folder}/home"}}'
    by = '{"type":"person","name":"ada","via":"test"}'
    assert json.loads(hook)["request"]["subtype"] == "hook_callback"
    return [
        ("policy.applied", f'{{"digest":"{DIGEST}","source":"policy ask","by":{by},"at":1.0}}'),
        (
            "session.created",
            f'{{"id":"{SESSION}",{place},"homes":{homes},"limits":{{}},"by":"ada"}}',
        ),
        ("session.prompted", f'{{"uuid":"{PROMPT}","line":{TOLD},"at":3.0,"by":"ada"}}'),
        ("session.queued", '{"at":3.0}'),
        ("session.state", '{"was":"stopped","now":"queued","at":3.0}'),
        ("launch.intended", f'{{{of},"at":4.0}}'),
        ("session.state", '{"was":"queued","now":"starting","at":4.0}'),
        ("launch.started", f'{{{of},"pid":{pid},"born":{born},"boot":"{boot}","at":5.0}}'),
        ("bridle.wrote", f'{{{of},"start":0,{hello},"line":{HELLO}}}'),
        (
            "agent.answered",
            f'{{{of},"end":{end},"type":"initialize","id":"req_1_e1b2a202","line":{answered}}}',
        ),
        ("launch.ready", f'{{{of},"at":6.0}}'),
        ("session.state", '{"was":"starting","now":"idle","at":6.0}'),
        (
            "bridle.wrote",
            f'{{{of},"start":{len(HELLO) + 1},"what":"prompt","id":"{PROMPT}","line":{TOLD}}}',
        ),
        ("session.state", '{"was":"idle","now":"running","at":7.0}'),
        ("agent.said", f'{{{of},"end":{later},"type":"system/init","line":{init}}}'),
        ("agent.said", f'{{{of},"end":{later},"type":"assistant","line":{one}}}'),
        ("something.unknown", "{}"),
    ]


async def write_down(old: OldLaunch, folder: Path) -> None:
    async with open_journal(folder / "home") as journal:
        text = {"text": POLICY, "source": "policy ask", "at": 1.0}
        by = {"type": "person", "name": "ada", "via": "test"}
        await journal.records.create("policies", DIGEST, json.dumps({**text, "by": by}).encode())
        # Of another format: what can't be read is not used.
        await journal.records.create("takeovers", SESSION, b'{"launch":"x","format":"other"}')
        events = [NewEvent(kind, body.encode()) for kind, body in stream_of(old, folder)]
        await journal.log.append(SESSION, events, 0)


async def test_an_agent_that_the_first_version_started_goes_on(
    old: OldLaunch, tmp_path: Path
) -> None:
    await old.until((old.spool / "shim").exists)
    old.tell(HELLO)
    old.tell(TOLD)
    await old.until(lambda: len(old.said()) >= 4)
    await write_down(old, tmp_path)

    async with open_supervisor(tmp_path / "home") as supervisor:
        assert supervisor.recovered.alive == (SESSION,)
        async for changes in supervisor.approvals.watch():
            pending = [approval for approval in changes if approval.status == "pending"]
            for approval in pending:
                await supervisor.approvals.decide(approval.id, Approve(), by=ADA)
            if any(approval.tool == "Bash" for approval in pending):
                break
        record = await supervisor.wait("old", lambda record: record.turns == 1, 20)
        assert (record.state, record.outcome, record.launches) == ("idle", "complete", 1)
        await supervisor.send("old", "more")
        await supervisor.wait("old", lambda record: record.turns == 2, 20)
        await supervisor.stop("old")
        assert supervisor.get("old").state == "stopped"
    assert see(old.process.pid) is None
