"""What a request must look like on the wire, stricter than the parser that reads it (h11).

Owns the size and the form of a request's head, and how much may stand around the pieces of a
chunked body. Whatever two servers could read in two ways is refused (request smuggling). It writes
nothing: `protocol` answers with the problem that it finds here in `refusal`.
"""

from __future__ import annotations

import re
from typing import Any

import h11

from .problems import Problem

MAX_HEAD = 64 * 1024
MAX_HEADERS = 100
#: What a chunk has around its data: the end of the one before, its size in 20 digits, line ends.
#: More of it is an extension, which nobody sends.
_MAX_AROUND_CHUNK = 32
_END_OF_HEAD = re.compile(rb"\n\r?\n")
#: Line ends that are none, and what no header and no request line may have in it.
_BAD_LINE_END = re.compile(rb"(?<!\r)\n|\r(?!\n)")
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_CONTINUED_LINE = re.compile(rb"\n[ \t]")
#: No less than the longest of these has, but for its last letter.
_LONGEST_LOOK = 3
#: Headers of which only one could be believed.
_ONCE = (
    b"authorization",
    b"content-length",
    b"content-type",
    b"host",
    b"last-event-id",
    b"origin",
    b"transfer-encoding",
)


class StrictConnection(h11.Connection):
    """Reads requests as h11 does, and refuses more. `refusal` says why, once it has."""

    def __init__(self) -> None:
        super().__init__(h11.SERVER, MAX_HEAD)
        self.refusal: Problem | None = None
        self._around_chunk = 0
        #: How much of a head that has not ended yet was looked at, and the ends of lines in that:
        #: one that comes letter by letter is not read again with each.
        self._looked_at = self._lines = 0

    def next_event(self) -> Any:
        is_head = self.their_state is h11.IDLE
        if is_head:
            self._check_head(bytes(self._receive_buffer))
        before = len(self._receive_buffer)
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._check_request(event)
            self._around_chunk = self._looked_at = self._lines = 0
        elif not is_head:
            self._check_chunk(before - len(self._receive_buffer), event)
        return event

    def _check_head(self, received: bytes) -> None:
        """Also of a head that has not ended yet: it need not come to its end."""
        # What is looked for may have begun in what came before.
        start = max(self._looked_at - _LONGEST_LOOK, 0)
        end = _END_OF_HEAD.search(received, start)
        head = received[: end.end()] if end else received.removesuffix(b"\r")
        if len(head) > MAX_HEAD:
            self._refuse_size(f"The headers are too large: {MAX_HEAD} bytes is the most.")
        self._lines += head.count(b"\n", self._looked_at)
        self._looked_at = len(head)
        if self._lines > MAX_HEADERS + 2:
            self._refuse_size(f"There are too many headers: {MAX_HEADERS} is the most.")
        if _BAD_LINE_END.search(head, start):
            self._refuse("A line must end with CR and LF, and neither may stand alone.")
        if _CONTINUED_LINE.search(head, start):
            self._refuse("A header must not go on in the next line.")
        if _CONTROL.search(head, start):
            self._refuse("There are control characters in the headers.")
        if end:
            self._check_names(head)

    def _check_names(self, head: bytes) -> None:
        """As they came: h11 makes one length of two that are equal."""
        headers = [line.partition(b":") for line in head.split(b"\r\n")[1:]]
        names = [name.strip().lower() for name, _, _ in headers]
        for name in _ONCE:
            if names.count(name) > 1:
                self._refuse(f"The header {name.decode().title()} is there more than once.")
        if b"content-length" in names:
            if b"transfer-encoding" in names:
                self._refuse("It has a Content-Length and a Transfer-Encoding.")
            if b"," in headers[names.index(b"content-length")][2]:
                self._refuse("It has more than one Content-Length.")

    def _check_request(self, request: h11.Request) -> None:
        is_chunked = any(name == b"transfer-encoding" for name, _ in request.headers)
        if request.http_version not in (b"1.0", b"1.1") or (
            is_chunked and request.http_version == b"1.0"
        ):
            self._refuse("It is not HTTP/1.1, or not as that has it.")
        if not request.target.startswith(b"/"):
            self._refuse("Its target must be a path.")

    def _check_chunk(self, taken: int, event: object) -> None:
        if isinstance(event, h11.Data):
            taken -= len(event.data)
        self._around_chunk += taken
        if isinstance(event, h11.Data | h11.EndOfMessage) and self._around_chunk:
            limit = MAX_HEAD if isinstance(event, h11.EndOfMessage) else _MAX_AROUND_CHUNK
            if self._around_chunk > limit:
                self._refuse("A chunk of the body has an extension, or too many trailers follow.")
            self._around_chunk = 0

    def _refuse_size(self, detail: str) -> None:
        self._fail(Problem(431, "headers_too_large", detail, "Send fewer, or shorter ones."))

    def _refuse(self, detail: str) -> None:
        self._fail(Problem(400, "bad_request", detail, "Send HTTP/1.1 as RFC 9112 has it."))

    def _fail(self, problem: Problem) -> None:
        self.refusal = problem
        raise h11.RemoteProtocolError(problem.detail, error_status_hint=problem.status)
