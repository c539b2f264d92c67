"""What a later supervisor needs to go on with a launch, and need not read all of its past for.

Owns the saved states: one for each session, taken when nothing is under way, stamped with the
number up to which the log is in it. The log is the truth: without a saved state it is read whole.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Callable

import msgspec
from msgspec import Struct

from ..approvals.policies import POLICY_APPLIED
from ..errors import BridleError, words_of
from ..journal import Event
from ..process.detached import DetachedProcess
from ..session.past import Past, SavedSession
from ..session.session import Session
from ..views import stream
from .means import Means
from .notes import entry
from .outbox import Outbox
from .pen import Pen
from .resync import is_torn

BUCKET = "takeovers"
#: A state is saved after so many lines, if it can be.
EVERY_LINES = 500
#: So much of the output that was read is given back to the disk at once.
PUNCH_BYTES = 4 * 1024 * 1024
#: Records have a limit of 256 KB.
MOST_SAVED = 240 * 1024
PAGE = 500

_log = logging.getLogger(__name__)


class Saved(Struct, frozen=True, kw_only=True):
    """`seq`: what the log has after it is not in the state. `inbox`: to here it is as written."""

    launch: str
    seq: int
    inbox: int = 0
    session: SavedSession | None = None


class Keeper:
    """Saves one launch's state from time to time, and gives back what its spool no longer needs."""

    def __init__(
        self,
        means: Means,
        session_id: str,
        launch: str,
        session: Session,
        pen: Pen,
        outbox: Outbox,
        process: DetachedProcess,
    ) -> None:
        self._means = means
        self._id = session_id
        self._launch = launch
        self._session = session
        self._pen = pen
        self._outbox = outbox
        self._spool = process.spool
        self._lines = 0
        self._is_due = False
        self._punched = 0
        self._saving: asyncio.Task[None] | None = None
        #: Whether it must be asked first where it stands.
        self.is_damaged: Callable[[], bool] = lambda: False

    def recalled(self, lines: int) -> None:
        """So many had to be read again: a controller that is killed often saves one, too."""
        self._lines = lines

    def give_back(self, stored: int) -> None:
        """The log has the output up to here: nobody will read it in the spool again."""
        if stored - self._punched >= PUNCH_BYTES:
            self._punched = stored
            self._spool.punch("stdout", stored)

    def heard(self, lines: int) -> None:
        """Some more lines are on their way to the log."""
        self._lines += lines
        if self._lines >= EVERY_LINES and not self._is_due:
            self._is_due = True
            self._pen.write([], self._try_to_save)

    def _try_to_save(self) -> None:
        if not self._pen.is_quiet:
            self._pen.write([], self._try_to_save)  # after what waits now
            return
        self._is_due = False
        if self._outbox.is_idle and self._saving is None and not self.is_damaged():
            self._save()

    def _save(self) -> None:
        state = self._session.save()
        if state is None:
            return
        saved = Saved(
            launch=self._launch, seq=self._pen.last_seq, inbox=self._outbox.end, session=state
        )
        if len(msgspec.json.encode(saved)) > MOST_SAVED:
            return
        self._lines = 0
        # It has answered to all that it was asked, so it has read it; what came after, perhaps not.
        read = 0 if self._session.is_busy else self._outbox.asked_end
        self._saving = asyncio.ensure_future(self._keep(saved, read))

    async def _keep(self, saved: Saved, read: int) -> None:
        try:
            await keep(self._means, self._id, saved)
            # Not before: until it is kept, all that was written since the last one is compared.
            self._spool.punch("inbox", min(saved.inbox, read))
        except (BridleError, OSError) as error:
            _log.warning("the state of session %s can't be saved: %s", self._id, words_of(error))
        finally:
            self._saving = None


async def keep(means: Means, session_id: str, saved: Saved) -> None:
    await means.journal.bucket(BUCKET, Saved).change(session_id, lambda _: saved)


async def saved_state(means: Means, session_id: str, launch: str) -> Saved:
    """The latest of this launch; an empty one where there is none that can be read."""
    try:
        found = await means.journal.bucket(BUCKET, Saved).get(session_id)
    except (BridleError, msgspec.MsgspecError) as error:
        _log.warning("the saved state of session %s can't be read: %s", session_id, error)
        found = None
    if found is None or found.value.launch != launch:
        return Saved(launch=launch, seq=0)
    return found.value


class Replayed(Struct):
    """What was written to the agent since the saved state, and what its log says of the launch."""

    written: list[bytes]
    is_ready: bool = False
    #: How many lines of the agent's were told.
    lines: int = 0
    #: Whether a part of what it said was lost, and it was not asked yet where it stands.
    is_damaged: bool = False


async def replay(means: Means, session_id: str, saved: Saved, past: Past) -> Replayed:
    """Tell a session its past: every line of the launch that is not in the saved state, and where
    it was put under another policy."""
    done = Replayed([], is_ready=saved.session is not None)
    async for event in _events(means, session_id, saved.seq):
        if event.kind == stream.SAID and _TELLS_NOTHING(event.body):
            done.lines += 1
            continue
        if event.kind == POLICY_APPLIED:
            past.policy_applied()
            continue
        body = stream.body_of(entry(event) if event.blob is None else await _whole(means, event))
        if getattr(body, "launch", None) == saved.launch:
            _recall(past, done, event.kind, body)
    return done


def _recall(past: Past, done: Replayed, kind: str, body: Struct) -> None:
    match body:
        case stream.Line() if kind in HEARD:
            _hear(past, bytes(body.line) or body.bytes)
            done.lines += 1
        case stream.Wrote(line=line):
            written = bytes(line) + b"\n"
            past.wrote(written)
            done.written.append(written)
        case stream.Begun(request_id=request_id):
            past.began(request_id)
        case stream.Ready():
            done.is_ready = True
        case stream.Resynced():
            done.is_damaged = False
        case stream.Line() if kind == stream.MALFORMED and is_torn(body.bytes):
            done.is_damaged = True


#: What the model says, line after line: most of a log, and nothing that a session must know of.
_TELLS_NOTHING = re.compile(
    rb'\{"launch":"[^"]*","end":\d+,"type":"(?:assistant|tool_progress)"'
).match


def _hear(past: Past, line: bytes) -> None:
    try:
        past.heard(line)
    except Exception:  # noqa: BLE001 - one line must not keep the next from its way
        _log.exception("could not recall %r", line[:200])


#: Lines that change what a session knows.
HEARD = (stream.SAID, stream.ASKED, stream.UNREADABLE, stream.WITHDREW, stream.ANSWERED)


async def _events(means: Means, session_id: str, after: int) -> AsyncIterator[Event]:
    while events := await means.journal.log.read(session_id, after, PAGE):
        for event in events:
            yield event
        after = events[-1].seq


async def _whole(means: Means, event: Event) -> stream.Entry:
    payload = await means.journal.payload(event)
    return stream.Entry(event.seq, event.at, event.kind, payload)
