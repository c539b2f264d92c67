"""What is written to an inbox: whole, in order and at once, and later where the disk is full.

Owns the order. Whoever needs to know what has been appended (a supervisor does) writes to the
spool itself.
"""

from __future__ import annotations

import asyncio
import logging

from .spool import Spool

RETRY_SECONDS = 1.0

_log = logging.getLogger("bridle.process")


class Feed:
    """The input of one CLI, over its spool."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._unwritten = b""
        self._is_closing = False
        self._retry: asyncio.TimerHandle | None = None

    def write(self, data: bytes) -> None:
        if not self._is_closing:
            self._unwritten += data
            if self._retry is None:
                self._write()

    def close(self) -> None:
        """After what is waiting was written."""
        if not self._is_closing:
            self._is_closing = True
            if self._retry is None:
                self._write()

    def abandon(self) -> None:
        """Now, whatever is waiting: nobody will read it."""
        self._is_closing = True
        if self._retry:
            self._retry.cancel()

    def _write(self) -> None:
        self._retry = None
        start = self._spool.inbox_size()
        try:
            if self._unwritten:
                self._spool.append(self._unwritten)
        except FileNotFoundError:
            self._unwritten = b""  # the spool was taken away, and with it the CLI's input
        except OSError as error:
            # What is there can't be taken back: the rest must come right after it.
            self._unwritten = self._unwritten[self._spool.inbox_size() - start :]
            self._retry = asyncio.get_running_loop().call_later(RETRY_SECONDS, self._write)
            _log.warning("can't write to %s: %s", self._spool.folder, error.strerror)
            return
        self._unwritten = b""
        self._spool.ring(end=self._is_closing)
