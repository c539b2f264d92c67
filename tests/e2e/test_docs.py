"""The Python of the README and of docs/protocol.md runs as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bridle.testing import FakeCli, InstalledCli

ROOT = Path(__file__).resolve().parents[2]


def python_in(page: Path) -> str:
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    return str(code)


def test_the_readmes_python_does_what_it_says(real_cli: InstalledCli, tmp_path: Path) -> None:
    code = python_in(ROOT / "README.md")
    assert f'install_cli("{real_cli.version}")' in code
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == "Done. hi\n\n", done.stderr


def test_the_readmes_python_is_typed(tmp_path: Path) -> None:
    (tmp_path / "readme.py").write_text(python_in(ROOT / "README.md"))
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "readme.py"],
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
