"""Every line of the wire, before it is parsed: for a function, or into a file.

A file has the kit's format (`bridle.process.recording`), so what went wrong once can be replayed.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeAlias

from ..errors import InvalidLaunch, InvalidScript
from ..process.recording import Recorder, WholeLines

Direction: TypeAlias = Literal["in", "out"]
#: Is given each line as it was on the wire: `in` is what we wrote, `out` what the CLI wrote.
LineLog: TypeAlias = Callable[[Direction, bytes], None]

_log = logging.getLogger("bridle.session")


class WireLog:
    """Where a session writes down what goes over the wire. Its failure never harms the session."""

    def __init__(self, target: str | os.PathLike[str] | LineLog) -> None:
        self._call = target if callable(target) else None
        self._lines = WholeLines()
        self._recorder: Recorder | None = None
        if not callable(target):
            self._recorder = Recorder(Path(target), append=True)
            try:
                self._recorder.__enter__()
            except InvalidScript as error:
                raise InvalidLaunch(f"the log can't be written: {error}") from error

    def received(self, data: bytes) -> None:
        try:
            if self._recorder:
                self._recorder.received(data)
            elif self._call:
                for line in self._lines.add(data):
                    self._call("out", line)
        except Exception as error:  # noqa: BLE001 - a full disk, a mistake in the function
            self._give_up(error)

    def sent(self, line: bytes) -> None:
        try:
            if self._recorder:
                self._recorder.sent(line)
            elif self._call and line:
                self._call("in", line.rstrip(b"\n"))
        except Exception as error:  # noqa: BLE001
            self._give_up(error)

    def complained(self, text: str) -> None:
        try:
            if self._recorder:
                self._recorder.stderr(text)
        except Exception as error:  # noqa: BLE001
            self._give_up(error)

    def close(self) -> None:
        half = self._lines.rest()
        try:
            if self._call and half:
                self._call("out", half)
            if self._recorder:
                self._recorder.close()
        except Exception as error:  # noqa: BLE001
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        _log.error("the wire is not logged any more: %s: %s", type(error).__name__, error)
        recorder, self._call, self._recorder = self._recorder, None, None
        if recorder:
            with contextlib.suppress(OSError):
                recorder.close()
