"""Makes the fixtures of this folder: records conformance scenarios of real CLIs and trims them.

    make record

Long strings and lists of what the CLI says of itself are cut, and paths of this machine are
replaced; requests of the CLI stay whole, because answers to them echo their input.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw

from bridle.testing import Entry, load_recording
from bridle.testing.install import cache_folder

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LONGEST_STRING = 60
LONGEST_LIST = 3

SCENARIOS = [
    "allow",
    "ask_user_question",
    "clear",
    "deny_with_interrupt",
    "every_request",
    "exit_code",
    "hook_deny",
    "image_from_tool",
    "in_process_server",
    "initialize_again",
    "interrupt_pending",
    "interrupt_stream",
    "partial_turn",
    "plain_turn",
    "plan_approval",
    "post_tool_use",
    "queued_messages",
    "rewind_files",
    "slash_command_output",
    "stop_block",
    "structured_output",
    "subagent",
]


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="bridle-wires-") as folder:
        raw, scratch = Path(folder) / "raw", Path(folder) / "tmp"
        wanted = " or ".join(f"test_{name}" for name in SCENARIOS)
        run = [sys.executable, "-m", "pytest", "tests/conformance", "-q", "-n", "2", "-k", wanted]
        done = subprocess.run(
            [*run, f"--record={raw}", f"--basetemp={scratch}"], cwd=ROOT, check=False
        )
        if done.returncode:
            return done.returncode
        for old in HERE.glob("*/*.ndjson"):
            old.unlink()
        for path in sorted(raw.glob("*/*.1.ndjson")):
            name = path.name.removesuffix(".1.ndjson")
            if name in SCENARIOS:
                save(path, HERE / path.parent.name / f"{name}.ndjson", _names(scratch))
    return 0


def save(source: Path, target: Path, names: dict[str, str]) -> None:
    target.parent.mkdir(exist_ok=True)
    lines = [msgspec.json.encode(_trimmed(entry)).decode() for entry in load_recording(source)]
    text = "\n".join(lines) + "\n"
    for old, new in names.items():
        text = text.replace(old, new)
    target.write_text(text)


def _names(scratch: Path) -> dict[str, str]:
    """What stands in place of this machine's paths, as they are and as a CLI flattens them."""
    paths = {
        str(scratch): "/tmp/bridle",
        str(cache_folder()): "/opt/bridle",
        sys.executable: "/usr/bin/python3",
        str(ROOT): "/opt/source",
    }
    flat = {_flat(path): _flat(name) for path, name in paths.items()}
    return {**paths, **flat}


def _flat(path: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in path)


def _trimmed(entry: Entry) -> Entry:
    value = entry.value()
    if entry.dir != "out" or not isinstance(value, dict) or value["type"] == "control_request":
        return entry
    return msgspec.structs.replace(entry, msg=Raw(msgspec.json.encode(_cut(value))))


def _cut(value: Any) -> Any:
    match value:
        case str() if len(value) > LONGEST_STRING and not value.startswith(("iVBOR", "/")):
            # The tags of a slash command's output must close.
            return value[: LONGEST_STRING // 2] + "…" + value[-LONGEST_STRING // 2 :]
        case list():
            return [_cut(item) for item in value[:LONGEST_LIST]]
        case dict():
            return {key: _cut(item) for key, item in value.items()}
    return value


if __name__ == "__main__":
    sys.exit(main())
