"""The Python of the README and of docs/protocol.md runs as it stands there."""

from __future__ import annotations

import asyncio
import inspect
import os
import pty
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import bridle
import bridle.approvals
import bridle.journal
import bridle.policy
import bridle.supervisor
from bridle.approvals import Approvals, Policies, Remembered, TrustedFolders
from bridle.journal import Bucket, EventLog, Feed, Journal, NewEvent, SqliteJournal, memory_journal
from bridle.policy import PRESETS, InForce
from bridle.session.controls import Controls
from bridle.supervisor import Supervisor, open_supervisor
from bridle.testing import FakeCli, InstalledCli, Turn, tool_use

ROOT = Path(__file__).resolve().parents[2]


def blocks_in(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)


def python_in(page: Path) -> str:
    (code,) = blocks_in(page)
    return code


@pytest.mark.slow
async def test_the_readmes_python_does_what_it_says(
    real_cli: InstalledCli, scripted_model: Callable[..., Any], cli_home: Path, tmp_path: Path
) -> None:
    """A person says y; the real CLI writes the file."""
    bash = tool_use("Bash", command="touch t && echo hi > hello.txt")
    model = await scripted_model([Turn("On it.", bash), Turn("Done.")])
    env = {**model.environment(cli_home), "BRIDLE_CLAUDE": shlex.join(real_cli.command)}
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", python_in(ROOT / "README.md"), stdin=-1, stdout=-1, stderr=-1,
        cwd=tmp_path, env=env,
    )  # fmt: skip
    out, errors = await asyncio.wait_for(child.communicate(b"y\n"), 60)
    assert out.decode().endswith("agent: Done.\nresult: Done.\n"), errors.decode()
    assert "May Bash run with {'command':" in out.decode()
    assert (tmp_path / "hello.txt").read_text() == "hi\n"


@pytest.mark.slow
def test_the_python_of_the_readme_and_the_docs_is_typed(tmp_path: Path) -> None:
    pages_of = ("sessions", "journal", "policies", "approvals", "views", "supervisor", "streams")
    names = ("README.md", *(f"docs/{name}.md" for name in pages_of))
    pages = [block for name in names for block in blocks_in(ROOT / name)]
    assert len(pages) >= 5
    for number, code in enumerate(pages):
        (tmp_path / f"page{number}.py").write_text(code)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "Success" in done.stdout, done.stdout


def test_the_controller_of_the_protocol_page_works(fake_cli: Callable[..., FakeCli]) -> None:
    names: dict[str, Any] = {}
    exec(python_in(ROOT / "docs" / "protocol.md"), names)
    steps = [
        {"prompt": "do it"},
        {"ask": {"tool_name": "Bash", "input": {"command": "ls"}}, "id": "tool"},
        {"hook": {"hook_event_name": "Stop"}, "id": "hook"},
        {"request": {"subtype": "sing"}, "id": "unreadable"},
        {"result": "Done."},
    ]
    fake = fake_cli(steps)
    with subprocess.Popen(fake.command, stdin=-1, stdout=-1, bufsize=0) as child:
        assert names["run"](child.stdin, child.stdout, "do it") == "Done."
    assert child.returncode == 0
    told = {id_: fake.answer_to(id_) or {} for id_ in ("tool", "hook", "unreadable")}
    assert told["tool"]["response"]["behavior"] == "allow"
    assert told["hook"]["subtype"] == told["unreadable"]["subtype"] == "error"


def names_in(page: Path) -> set[str]:
    """The words that stand between backticks, outside of blocks."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    return set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", text))))


def test_every_option_and_method_of_a_session_is_documented() -> None:
    names = {*bridle.LaunchSpec.__struct_fields__, *inspect.signature(bridle.connect).parameters}
    methods = {name for name, _ in inspect.getmembers(Controls, inspect.iscoroutinefunction)}
    told = names_in(ROOT / "docs" / "sessions.md")
    assert (names | methods) - {"launch", "ask"} - told == set()


def test_the_hooks_and_stored_sessions_of_the_page_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    for code in blocks_in(ROOT / "docs" / "sessions.md"):
        exec(code, {"__name__": "page"})


async def test_the_python_of_the_journal_page_tells_what_was_stored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names: dict[str, Any] = {"__name__": "page"}
    exec(blocks_in(ROOT / "docs" / "journal.md")[0], names)
    async with asyncio.timeout(10):
        await names["main"](str(tmp_path))
    kinds = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert kinds == ["prompt", "message", "decision", "delta"]


async def test_the_follower_of_the_journal_page_goes_on_where_it_was(
    capsys: pytest.CaptureFixture[str],
) -> None:
    names: dict[str, Any] = {}
    exec(blocks_in(ROOT / "docs" / "journal.md")[1], names)
    async with memory_journal() as journal, asyncio.timeout(10):
        cursors = journal.records.watch("cursors")
        for last in (0, 1):
            following = asyncio.create_task(names["follow"](journal, "s"))
            await journal.log.append("s", [NewEvent("said", b"")], last)
            while not await anext(cursors):
                pass
            following.cancel()
            await asyncio.wait([following])
    assert capsys.readouterr().out == "1 said\n2 said\n"


def test_every_name_and_method_of_the_journal_is_documented() -> None:
    page = ROOT / "docs" / "journal.md"
    told = names_in(page) | set(re.findall(r"\w+", " ".join(blocks_in(page))))
    kinds = (EventLog, Feed, Bucket, Journal, SqliteJournal)
    methods = {name for kind in kinds for name in vars(kind) if not name.startswith("_")}
    passed_around = {"Batch", "BlobRef", "Event", "Record", "Seal", "StreamInfo"}
    names = set(bridle.journal.__all__) - passed_around
    assert (names | methods) - {"aclose"} - told == set()


def test_the_python_of_the_policy_page_says_what_stands_beside_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for code in blocks_in(ROOT / "docs" / "policies.md"):
        exec(code, {"__name__": "page"})
    asked, suggested, tried = capsys.readouterr().out.splitlines()[:3]
    assert asked == "Asked: no rule allows `rm -rf build`; runs npm, rm"
    assert suggested == "['Bash(npm run test && rm -rf build)']"
    assert tried == "this would have answered 1 of 2"


def test_the_presets_of_the_policy_page_are_those_of_the_code() -> None:
    rows = re.findall(r"^\| ([a-z ]+): .*?\| (\w+) \| (\w+) \| (\w+) \| (\w+) \| (\w+) \|$",
                      (ROOT / "docs" / "policies.md").read_text(), re.MULTILINE)  # fmt: skip
    told = {preset: {row[0]: row[at] for row in rows} for at, preset in enumerate(PRESETS, 1)}
    assert told == PRESETS


@pytest.mark.parametrize(
    ("page", "module", "kinds"),
    [
        ("policies", bridle.policy, (InForce,)),
        ("approvals", bridle.approvals, (Approvals, Remembered, TrustedFolders, Policies)),
        ("supervisor", bridle.supervisor, (Supervisor,)),
    ],
)
def test_every_name_and_method_of_what_has_a_page_is_documented(
    page: str, module: ModuleType, kinds: tuple[type, ...]
) -> None:
    path = ROOT / "docs" / f"{page}.md"
    told = names_in(path) | set(re.findall(r"\w+", " ".join(blocks_in(path))))
    methods = {name for kind in kinds for name in vars(kind) if not name.startswith("_")}
    # Handed round rather than asked for; and what the parts of the package say to each other.
    known = {
        *(
            "Approval",
            "ApprovalRequest",
            "ApprovalWatch",
            "Cancelled",
            "Clock",
            "Decided",
            "Expired",
        ),
        *("Outcome", "PolicyApplied", "RememberedRule", "StoredPolicy", "SystemClock", "Trust"),
        *("Preset", "Verdict", "elicitation_answer_of", "answer_of", "aclose", "start", "ground"),
        *("added", "keep", "restore", "saved", "tell", "explain", "judge", "policy"),
        *("open", "go_on", "passed", "forget", "look"),
    }
    assert (set(module.__all__) | methods) - known - told == set()


async def test_the_approvals_page_runs_with_a_person_at_a_terminal(
    fake_cli: Callable[..., FakeCli], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page's own code, a fake CLI, and somebody who presses y."""
    steps = [
        {"prompt": "Make the tests pass"},
        {"ask": {"tool_name": "Bash", "input": {"command": "npm test"}, "tool_use_id": "t"}},
        {"result": "They pass."},
    ]
    fake = fake_cli(steps)
    monkeypatch.setenv("BRIDLE_CLAUDE", shlex.join(fake.command))
    code = blocks_in(ROOT / "docs" / "approvals.md")[0]
    script = tmp_path / "page.py"
    script.write_text(f"{code}\n\nimport sys\n\nasyncio.run(main(*sys.argv[1:]))\n")
    master, slave = pty.openpty()
    (tmp_path / "app").mkdir()
    child = await asyncio.create_subprocess_exec(
        sys.executable, str(script), str(tmp_path / "app"), str(tmp_path / "home"),
        stdin=slave, stdout=slave, stderr=slave,
    )  # fmt: skip
    os.close(slave)
    seen = ""
    while "They pass." not in seen:
        seen += (await asyncio.wait_for(asyncio.to_thread(os.read, master, 4096), 30)).decode()
        if "[a]lways" in seen and "They pass." not in seen:
            os.write(master, b"y")
    assert "$ npm test" in seen
    assert await asyncio.wait_for(child.wait(), 30) == 0
    os.close(master)


async def test_the_supervisors_page_runs_and_its_agent_runs_on(
    fake_cli: Callable[..., FakeCli], tmp_path: Path
) -> None:
    """The page's own program ends; another finds the agent and ends it."""
    steps = [
        {"prompt": "Write a greeting"},
        {"ask": {"tool_name": "Bash", "input": {"command": "rm x"}, "tool_use_id": "t"}},
        {"result": "Done."},
        {"prompt": True},
    ]
    env = {**os.environ, "BRIDLE_CLAUDE": shlex.join(fake_cli(steps).command)}
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", python_in(ROOT / "docs" / "supervisor.md"), stdout=-1, stderr=-1,
        cwd=tmp_path, env=env,
    )  # fmt: skip
    out, errors = await asyncio.wait_for(child.communicate(), 30)
    assert out.decode() == "idle complete $0.00\n", errors.decode()
    async with open_supervisor(tmp_path / "home") as supervisor:
        assert supervisor.get("greeter").state == "idle"
        await supervisor.stop("greeter")
        assert supervisor.recovered.alive
