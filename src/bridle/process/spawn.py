"""Starting a child: its own session, pipes on all three, told to die if we do; or a shim, which
is to outlive us.

Owns the one blocking call (about a millisecond: no `preexec_fn`, so the fork is cheap and safe with
threads). Must be called on the loop's thread: a child is told of the death of the *thread* that
started it.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ..errors import InvalidLaunch, LaunchFailed
from .find import which
from .spec import StrPath

# For systems without a `setpriv` that can do it: the same by the interpreter, in some 20 ms.
_TELL_AND_EXEC = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 15)
if os.getppid() != int(sys.argv[1]): sys.exit(143)
os.execv(sys.argv[2], sys.argv[2:])
"""

_SHIM = str(Path(__file__).with_name("shim.py"))


class Spawned(NamedTuple):
    """A child that runs, and our ends of its pipes. The caller owns them, and the reaping."""

    process: subprocess.Popen[bytes]
    stdin: int
    stdout: int
    stderr: int

    @property
    def pid(self) -> int:
        return self.process.pid


def spawn(argv: Sequence[str], env: dict[str, str], cwd: StrPath | None = None) -> Spawned:
    """Start it."""
    folder, command = _checked(argv, env, cwd)
    words = [*dies_with_us(), *command]
    fds: list[int] = []
    try:
        for _ in range(3):
            fds += os.pipe()
        child_in, stdin, stdout, child_out, stderr, child_err = fds
        process = subprocess.Popen(
            words,
            stdin=child_in,
            stdout=child_out,
            stderr=child_err,
            env=env,
            cwd=folder,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        for fd in fds:
            os.close(fd)
        raise LaunchFailed(f"can't start {argv[0]}: {error}") from error
    for fd in (child_in, child_out, child_err):
        os.close(fd)
    return Spawned(process, stdin, stdout, stderr)


def spawn_shim(
    spool: Path, argv: Sequence[str], env: dict[str, str], cwd: StrPath | None = None
) -> int:
    """Start a shim that runs it, with this spool; its pid. The caller owns the reaping."""
    folder, command = _checked(argv, env, cwd)
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


def _checked(
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


def dies_with_us() -> tuple[str, ...]:
    """Words before a command that have it sent SIGTERM when this thread ends; none but on Linux.

    SIGTERM and not SIGKILL: a CLI then ends its own tools, which would outlive a kill.
    """
    if sys.platform != "linux":
        return ()
    setpriv = _setpriv()
    if setpriv:
        return (setpriv, "--pdeathsig", "TERM", "--")
    return (sys.executable, "-I", "-S", "-c", _TELL_AND_EXEC, str(os.getpid()))


@functools.cache
def _setpriv() -> str | None:
    path = which("setpriv", os.environ)
    if path is None:
        return None
    done = subprocess.run([path, "--help"], capture_output=True, check=False, timeout=10)
    return path if b"--pdeathsig" in done.stdout else None
