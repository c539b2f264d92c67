"""Records the wire between any controller and any CLI, by standing between them.

    python -m bridle.testing.record FILE -- claude -p --input-format stream-json …

Give a controller this command in place of the CLI: what passes goes on unchanged, and into FILE
(`recording` says how). Signals are passed on; it ends as the CLI does.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from types import FrameType

from ..errors import InvalidScript
from ..process.recording import Recorder

READ_SIZE = 64 * 1024
USAGE = "usage: python -m bridle.testing.record FILE -- COMMAND [ARGUMENT…]\n"


class Tee:
    """One CLI process whose three pipes pass through us."""

    def __init__(self, command: list[str], recorder: Recorder) -> None:
        pipe = subprocess.PIPE
        self._recorder = recorder
        self._lock = threading.Lock()
        self._child = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0)
        self._recorder.note({"argv": command, "cwd": os.getcwd()})  # noqa: PTH109

    def run(self) -> int:
        """The CLI's exit code; negative for a signal."""
        child = self._child
        assert child.stdin
        assert child.stdout
        assert child.stderr
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._pass_on)
        told, said, erred = self._recorder.sent, self._recorder.received, self._stderr
        # The first is left behind: our stdin may stay open long after the CLI has gone.
        threading.Thread(target=self._feed, args=(child.stdin.fileno(), told), daemon=True).start()
        outward = [
            threading.Thread(target=self._pump, args=(child.stdout.fileno(), 1, said)),
            threading.Thread(target=self._pump, args=(child.stderr.fileno(), 2, erred)),
        ]
        for thread in outward:
            thread.start()
        code = child.wait()
        for thread in outward:
            thread.join()
        with self._lock:
            self._recorder.end_of("out")
            self._recorder.note({"exit": code})
        return code

    def _pass_on(self, number: int, _: FrameType | None) -> None:
        self._child.send_signal(number)

    def _feed(self, target: int, record: Callable[[bytes], None]) -> None:
        self._pump(0, target, record)
        with self._lock:
            if self._recorder.is_open:
                self._recorder.note("stdin closed")
        assert self._child.stdin
        self._child.stdin.close()

    def _pump(self, source: int, target: int, record: Callable[[bytes], None]) -> None:
        try:
            while data := os.read(source, READ_SIZE):
                with self._lock:
                    if self._recorder.is_open:
                        record(data)
                view = memoryview(data)
                while view:
                    view = view[os.write(target, view) :]
        except OSError:
            # The other side has gone; what is left to say has nobody to hear it.
            return

    def _stderr(self, data: bytes) -> None:
        self._recorder.stderr(data.decode("utf-8", "replace"))


def main() -> int:
    if len(sys.argv) < 4 or sys.argv[2] != "--":
        sys.stderr.write(USAGE)
        return 2
    try:
        with Recorder(sys.argv[1]) as recorder:
            code = Tee(sys.argv[3:], recorder).run()
    except InvalidScript as error:
        sys.stderr.write(f"record: {error}\n")
        return 2
    except OSError as error:
        sys.stderr.write(f"record: can't start {sys.argv[3]}: {error.strerror}\n")
        return 2
    if code < 0:
        # SIGKILL has no handler that could be put back.
        with contextlib.suppress(OSError):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    sys.exit(main())
