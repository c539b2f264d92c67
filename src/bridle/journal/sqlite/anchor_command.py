"""A command of the user's that is given anchors, to keep them where this machine can't change them.

It is run now and then, with the newest anchors of what has changed as JSON lines on its stdin. One
that fails gets them again later; nothing ever waits for it, but for a moment at the end.
"""

from __future__ import annotations

import logging
import os
import shlex
import shutil
import signal
import subprocess
from pathlib import Path
from threading import Condition, Thread

from ..anchors import ENCODER, Line

#: At most once in so many seconds.
EVERY = 10.0
#: How long it may take.
SECONDS = 10.0
#: How much of its last words is told.
WORDS = 200

_log = logging.getLogger(__name__)


class AnchorCommand:
    """Owns a thread, from `start` to `stop`. `offer` may be called from any."""

    def __init__(self, command: str, folder: Path, every: float = EVERY) -> None:
        self._command = command
        self._folder = folder
        self._every = every
        self._seconds = SECONDS
        #: The newest of each stream and kind, by their numbers.
        self._lines: dict[tuple[str, str], Line] = {}
        self._changed = Condition()
        self._is_ending = False
        #: What went wrong the last time.
        self.problem = ""
        self._thread = Thread(target=self._run, name="bridle-anchor-command", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def offer(self, lines: list[Line]) -> None:
        with self._changed:
            for line in lines:
                self._lines.pop((line.stream, line.kind), None)  # so that they stay in order
                self._lines[line.stream, line.kind] = line
            self._changed.notify()

    def stop(self) -> None:
        """Give it what is left. Waits, as long as the command may take."""
        with self._changed:
            self._is_ending = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(self._seconds * 2)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._lines or self._is_ending)
                lines, self._lines = self._lines, {}
                is_last = self._is_ending
            if lines:
                self._give(lines)
            if is_last:
                return
            with self._changed:
                self._changed.wait_for(lambda: self._is_ending, self._every)

    def _give(self, lines: dict[tuple[str, str], Line]) -> None:
        data = b"".join(ENCODER.encode(line) + b"\n" for line in lines.values())
        problem = self._problem_of(data)
        if problem and problem != self.problem:
            _log.warning("%s; it gets these anchors again", problem)
        self.problem = problem
        if problem:
            with self._changed:
                self._lines = lines | self._lines

    def _words(self) -> list[str]:
        """Nothing of the current folder is run, where agents may write: it runs in the home, and no
        relative entry of the PATH counts."""
        program, *rest = shlex.split(self._command)
        if "/" not in program:
            folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
            found = shutil.which(program, path=os.pathsep.join(filter(os.path.isabs, folders)))
            if found is None:
                raise ValueError(f"{program} is not on the PATH")
            program = found
        return [program, *rest]

    def _problem_of(self, data: bytes) -> str:
        try:
            with subprocess.Popen(
                self._words(),
                cwd=self._folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is not for it
            ) as program:
                try:
                    _, said = program.communicate(data, timeout=self._seconds)
                except subprocess.TimeoutExpired:
                    os.killpg(program.pid, signal.SIGKILL)  # with all that it has started
                    return f"the anchor command did not end in {self._seconds:g} s, and was killed"
        except (OSError, ValueError) as error:
            return f"the anchor command can't be run: {error}"
        if program.returncode:
            words = said.decode(errors="replace").strip()[-WORDS:] or "it said nothing"
            return f"the anchor command failed ({program.returncode}): {words}"
        return ""
