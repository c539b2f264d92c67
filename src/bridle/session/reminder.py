"""A Stop hook that has an agent commit its work before it stops. Opt-in; it never blocks twice.

hooks.on(Stop)(bridle.remind_to_commit())
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from ..protocol.hook_outputs import HookOutput
from ..protocol.hooks import Stop
from .repository import git_runs

REASON = (
    "There are uncommitted changes in {where}. Commit what belongs to your work with a message "
    "that says why, and leave alone what was there before you; then you may stop."
)
#: A repository that takes longer than this is not waited for.
GIT_SECONDS = 10.0
MAX_SHOWN = 5

_log = logging.getLogger("bridle.session")


def remind_to_commit(
    *folders: str | os.PathLike[str],
) -> Callable[[Stop], Awaitable[HookOutput | None]]:
    """A hook for `Stop`: the first stop with uncommitted changes in one of these is blocked.

    Without folders it looks where the agent is. A folder that is in no repository stands for the
    repositories in it.
    """
    was_blocked = False

    async def at_stop(event: Stop) -> HookOutput | None:
        nonlocal was_blocked
        if event.stop_hook_active or was_blocked:
            was_blocked = False  # it had its chance; the next stop is another one
            return None
        places = [Path(folder) for folder in folders] or [Path(event.cwd or ".")]
        dirty = [words for repo in _repositories(places) if (words := await _changes(repo))]
        if not dirty:
            return None
        was_blocked = True
        return HookOutput(decision="block", reason=REASON.format(where="; ".join(dirty)))

    return at_stop


def _repositories(folders: Sequence[Path]) -> list[Path]:
    found: dict[Path, None] = {}
    for folder in folders:
        inside = next((p for p in (folder, *folder.parents) if (p / ".git").exists()), None)
        if inside:
            found[inside] = None
        elif folder.is_dir():
            found.update((p.parent, None) for p in sorted(folder.glob("*/.git")))
    return list(found)


async def _changes(repo: Path) -> str:
    """What `git status` tells, in a few words; nothing where git can't say."""
    # The agent may have written the repository's settings: what they name would run as us.
    runs = [str(one) for one in await asyncio.to_thread(git_runs, str(repo)) if one.is_unasked]
    if runs:
        _log.warning("no reminder to commit in %s: git would run %s", repo, "; ".join(runs))
        return ""
    command = ("git", "-c", "core.fsmonitor=false", "status", "--porcelain")
    env = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    try:
        git = await asyncio.create_subprocess_exec(
            *command,
            cwd=repo,
            env=env,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        _log.warning("no reminder to commit: %s", error)
        return ""
    try:
        async with asyncio.timeout(GIT_SECONDS):
            told, complaint = await git.communicate()
    except BaseException:
        git.kill()
        await git.wait()
        raise
    if git.returncode:
        _log.warning("no reminder to commit in %s: %s", repo, complaint.decode(errors="replace"))
        return ""
    lines = told.decode(errors="replace").splitlines()
    shown = ", ".join(line[3:] for line in lines[:MAX_SHOWN])
    more = f" and {len(lines) - MAX_SHOWN} more" if len(lines) > MAX_SHOWN else ""
    return f"{repo} ({shown}{more})" if lines else ""
