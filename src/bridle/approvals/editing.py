"""An approval's input in a person's editor: the command, the plan, or the whole input as JSON."""

from __future__ import annotations

import asyncio
import os
import shlex
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from .model import Approval, Approve, ApprovePlan

#: Given a text and the ending of a file's name for it: the text as it was saved.
Editor: TypeAlias = Callable[[str, str], Awaitable[str]]


#: How long an editor may take to end when it is told to.
END_SECONDS = 2.0


async def run_editor(text: str, suffix: str) -> str:
    """In the program that VISUAL or EDITOR names, on a file that nobody else can read."""
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="bridle-") as folder:
        file = Path(folder) / f"approval{suffix}"
        file.write_text(text)
        editing = await asyncio.create_subprocess_exec(*shlex.split(command), str(file))
        try:
            await editing.wait()
        except asyncio.CancelledError:
            # It was decided elsewhere: nobody needs the text any more.
            editing.terminate()
            try:
                async with asyncio.timeout(END_SECONDS):
                    await editing.wait()
            except TimeoutError:
                editing.kill()
                await editing.wait()
            raise
        return file.read_text()


async def edited_choice(approval: Approval, edit: Editor) -> Approve | ApprovePlan | None:
    """The input as somebody has changed it; None if they have not."""
    if approval.kind == "plan":
        before = str(approval.input.get("plan") or "")
        plan = (await edit(before, ".md")).strip()
        return ApprovePlan(plan=plan) if plan and plan != before.strip() else None
    if approval.tool == "Bash" and isinstance(command := approval.input.get("command"), str):
        changed = (await edit(f"{command}\n", ".sh")).strip()
        if not changed or changed == command.strip():
            return None
        return Approve(input={**approval.input, "command": changed})
    text = msgspec.json.format(msgspec.json.encode(approval.input), indent=2).decode()
    after: Any = msgspec.json.decode(await edit(f"{text}\n", ".json"))
    if not isinstance(after, dict) or after == approval.input:
        return None
    return Approve(input=after)
