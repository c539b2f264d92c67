"""Starting a shim, which outlives us; and what must be there before anything is started.

Owns one blocking call of about a millisecond: without `preexec_fn` the fork is cheap, and safe with
threads. `fork_client` starts what ends with us.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from ..errors import InvalidLaunch, LaunchFailed
from .find import which
from .spec import StrPath

_SHIM = str(Path(__file__).with_name("shim.py"))


def spawn_shim(
    spool: Path, argv: Sequence[str], env: dict[str, str], cwd: StrPath | None = None
) -> int:
    """Start a shim that runs it, with this spool; its pid. The caller owns the reaping."""
    folder, command = checked(argv, env, cwd)
    try:
        # Where the interpreter can't even run the shim, its own words tell why.
        with (spool / "stderr").open("ab") as errors:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", _SHIM, str(spool), "--", *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env=env,
                cwd=folder,
                start_new_session=True,
            )
    except (OSError, ValueError) as error:
        raise LaunchFailed(f"can't start {argv[0]}: {error}") from error
    # Popen would otherwise wait for it, and warn that it is running.
    process.returncode = 0
    return process.pid


def checked(
    argv: Sequence[str], env: dict[str, str], cwd: StrPath | None
) -> tuple[Path, list[str]]:
    """The folder to start in, and the words of the command, if both are there."""
    folder = Path(cwd or ".")
    if not folder.is_dir():
        raise InvalidLaunch(f"can't start an agent in {folder}: there is no such folder")
    # Told by us, because what runs it would only exit; absolute, because the child moves to `cwd`.
    program = which(argv[0], env)
    if program is None:
        raise LaunchFailed(f"can't start {argv[0]}: there is no such program that may be run")
    return folder, [str(Path(program).absolute()), *argv[1:]]
