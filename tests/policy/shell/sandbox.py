"""Real shells in a sandbox where nothing exists: they tell what they would have run.

Owns the driver (one shell that forks for each script) and what is read back from it; knows nothing
about Bridle's reader. Commands are logged by functions, stubs and the handler for what is not
found; there is no network, no input, a folder for each script and a limit of time for each batch.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

#: The commands of the scripts: `c` are written openly, `h` are hidden in strings.
NAMES = [f"{letter}{digit}" for letter in "ch" for digit in range(1, 10)]
#: A file to be read, in each script's folder.
GIVEN = "in"
HOME = "/nonexistent/home"
MAX_SECONDS = 8.0
BATCH = 250

_REAL = (
    "bash", "dash", "env", "find", "nice", "nohup", "setsid", "stdbuf", "timeout", "xargs",
)  # fmt: skip

#: One write for each record, so that those of a pipe do not mix.
_STUB = """#!/bin/dash
IFS='\x1f'
name=${0##*/}
printf '%s\\036' "$name${1+\x1f$*}" >>/proc/self/fd/200
case $name in *[1-6]) exit 0 ;; esac
exit 1
"""

#: Builtins that run, evaluate or change something; without them they are logged like any command.
_DISABLED = """. alias bg bind builtin caller cd command compgen complete compopt declare dirs
disown echo enable eval exec fc fg getopts hash help history jobs kill let logout mapfile popd pushd
readarray readonly shopt source suspend times trap type typeset ulimit umask unalias unset"""

_LOG = r"""
# Without newlines: at each of them a part would be written, and those of a pipe would mix.
NEWLINE_IT=$'\n' NO_NEWLINE_IT=$'\035'
LOG_IT() {
  local IFS=$'\037'; local LINE_IT="$*"
  printf '%s\036' "${LINE_IT//$NEWLINE_IT/$NO_NEWLINE_IT}" >&$LOG_TO
}
COUNT_IT=0
RUN_IT() {
  LOG_IT "$@"
  (( ++COUNT_IT < 40 )) || exit 1
  case $1 in *[1-6]) return 0 ;; esac
  return 1
}
for NAME_IT in NAMES; do
  eval "$NAME_IT() { RUN_IT $NAME_IT \"\$@\"; }"
done
"""

_BASH = r"""
exec 201>&1 1>/dev/null 2>/dev/null
set +o posix
command_not_found_handle() { RUN_IT "$@"; }
FUNCNEST=4
LOG_TO=200
exec 202<"$BASE_IT/scripts"
INDEX_IT=0
export -n BASE_IT
while IFS= read -r -d '' -u 202 SCRIPT_IT; do
  (
    exec 200>>"$BASE_IT/$INDEX_IT.log" 202<&-
    cd "$BASE_IT/$INDEX_IT" || exit
    ulimit -t 2 -f 64
    RUN_SCRIPT
  )
  INDEX_IT=$((INDEX_IT + 1))
  printf . >&201
done
"""

_ZSH = r"""
exec {OUT_IT}>&1 1>/dev/null 2>/dev/null
command_not_found_handler() { RUN_IT "$@"; }
FUNCNEST=6
# Redirections alone would run `cat` and `more`.
NULLCMD=: READNULLCMD=:
INDEX_IT=0
while IFS= read -r -d '' -u 0 SCRIPT_IT; do
  (
    exec {LOG_TO}>>"$BASE_IT/$INDEX_IT.log" 0</dev/null
    cd "$BASE_IT/$INDEX_IT" || exit
    ulimit -t 2 -f 64
    eval "$SCRIPT_IT"
  )
  INDEX_IT=$((INDEX_IT + 1))
  printf . >&$OUT_IT
done <"$BASE_IT/scripts"
"""


@dataclass
class Ran:
    """What a script really did."""

    commands: list[list[str]] = field(default_factory=list)
    files: set[str] = field(default_factory=set)
    is_finished: bool = True


class Sandbox:
    """A folder with stubs, and shells that run batches of scripts in it."""

    def __init__(self, shell: str = "bash", *, has_wrappers: bool = False) -> None:
        self.shell = shell
        self.has_wrappers = has_wrappers
        self._root = Path(tempfile.mkdtemp(prefix="bridle-fuzz-", dir=_fast_folder()))
        self._root.chmod(0o755)
        self._bin = self._root / "bin"
        self._count = 0
        self._lay_out()

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        shutil.rmtree(self._root, ignore_errors=True)

    def _lay_out(self) -> None:
        self._bin.mkdir()
        if self.has_wrappers:
            for name in _REAL:
                if real := shutil.which(name):
                    (self._bin / name).symlink_to(real)
            if dash := shutil.which("dash"):
                (self._bin / "sh").symlink_to(dash)
            for name in NAMES:
                stub = self._bin / name
                stub.write_text(_STUB)
                stub.chmod(0o755)
        source = _ZSH if self.shell == "zsh" else _BASH.replace("RUN_SCRIPT", self._how())
        (self._root / "driver").write_text(_LOG.replace("NAMES", " ".join(NAMES)) + source)

    def _how(self) -> str:
        if self.shell == "dash":
            return 'exec dash -c "$SCRIPT_IT"'
        if self.has_wrappers:
            return 'eval "$SCRIPT_IT"'
        # Set as a trap, since nothing could be disabled any more once `eval` is running.
        return f"""trap -- "$SCRIPT_IT" EXIT; enable -n {" ".join(_DISABLED.split())}"""

    def run(self, scripts: Sequence[str]) -> list[Ran]:
        """What each of these does, in order."""
        found: list[Ran] = []
        while len(found) < len(scripts):
            found += self._batch(scripts[len(found) : len(found) + BATCH])
        return found

    def _batch(self, scripts: Sequence[str]) -> list[Ran]:
        self._count += 1
        base = self._root / f"batch{self._count}"
        base.mkdir()
        base.chmod(0o777)
        for index in range(len(scripts)):
            folder = base / str(index)
            folder.mkdir()
            folder.chmod(0o777)
            (folder / GIVEN).write_text("in\n")
            (folder / GIVEN).chmod(0o666)
        (base / "scripts").write_bytes(b"".join(text.encode() + b"\0" for text in scripts))
        done = self._drive(base)
        ran = [_read_back(base, index) for index in range(min(done + 1, len(scripts)))]
        if done < len(scripts):
            ran[done].is_finished = False
        shutil.rmtree(base, ignore_errors=True)
        return ran

    def _drive(self, base: Path) -> int:
        """Let the driver run all scripts of the folder; how many ended in time."""
        driver = "zsh" if self.shell == "zsh" else "bash"
        options = ["-f"] if driver == "zsh" else ["--norc", "--noprofile"]
        path = str(self._bin) if self.has_wrappers else "/nonexistent"
        env = {"PATH": path, "HOME": HOME, "LC_ALL": "C.UTF-8", "BASE_IT": str(base)}
        shell = shutil.which(driver)
        assert shell, f"{driver} is not installed"
        child = subprocess.Popen(
            [*_confined(), shell, *options, str(self._root / "driver")],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=env,
            start_new_session=True,
        )
        assert child.stdout
        limit = threading.Timer(MAX_SECONDS, os.killpg, (child.pid, signal.SIGKILL))
        limit.start()
        # Whatever the scripts leave behind holds the pipe: its end is the end of all of them.
        dots = child.stdout.read()
        limit.cancel()
        limit.join()
        child.stdout.close()
        child.wait()
        return len(dots)


def _read_back(base: Path, index: int) -> Ran:
    log = base / f"{index}.log"
    text = log.read_bytes().decode(errors="surrogateescape") if log.exists() else ""
    text = text.replace("\x1d", "\n")
    ran = Ran([record.split("\x1f") for record in text.split("\x1e")[:-1]])
    folder = base / str(index)
    for path in folder.rglob("*"):
        name = str(path.relative_to(folder))
        if name != GIVEN or path.stat().st_size != 3:
            ran.files.add(name)
    return ran


def _fast_folder() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _confined() -> list[str]:
    """No network and no rights, as far as this machine lets us."""
    if os.geteuid() == 0:
        without = ["--reuid=65534", "--regid=65534", "--clear-groups"]
        return [_tool("unshare"), "-n", _tool("setpriv"), *without]
    alone = [_tool("unshare"), "-rn"]
    works = subprocess.run([*alone, "true"], capture_output=True, check=False).returncode == 0
    return alone if works else []


def _tool(name: str) -> str:
    return shutil.which(name) or name
