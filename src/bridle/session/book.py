"""Which prompt a message and a result belong to.

New CLIs name the prompts of a turn by their uuids: several may be merged into one turn, or join it
while it runs, and a turn may have none. Others tell when they take one up, by a `started` or by
repeating it (`isReplay`), be it before the turn begins or while it runs; some of those name the
last prompt alone in the result. Of the oldest we know the order in which they take prompts up, and
they repeat one that joins a turn which runs. What a CLI does is told by what it says, not by its
version.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeAlias
from weakref import WeakSet, ref

from msgspec import Struct

from ..errors import PromptCancelled, TurnFailed
from ..protocol.content import session_id_of
from ..protocol.events import MessageReceived
from ..protocol.messages import CommandLifecycle, Message, Result, User
from ..protocol.system import Init, Status
from ..protocol.unknown import Unknown
from .mailbox import Mailbox

#: A CLI that announces this names the prompts of each turn.
NAMES_PROMPTS = "msg_lifecycle_v1"

#: So much is kept of what a CLI says in a result that answers nothing.
MOST_COMPLAINT = 4_000

Outcome: TypeAlias = Result | BaseException


class Exchange(Mailbox):
    """A prompt (or none) and what is said for it, until it ends. Held by its readers alone."""

    def __init__(self, uuid: str | None, unread_bytes: int) -> None:
        super().__init__(unread_bytes)
        self.uuid = uuid
        self.origin: str | None = None
        self.ended = asyncio.Event()
        self._outcome: Outcome | None = None

    def end(self, outcome: Outcome) -> None:
        if not self.ended.is_set():
            self._outcome = outcome
            self.close(None if isinstance(outcome, Result) else outcome)
            self.ended.set()

    def result(self) -> Result:
        if isinstance(self._outcome, Result):
            return self._outcome
        assert self._outcome
        raise self._outcome.with_traceback(None)


class Watcher(Protocol):
    """Somebody who must know what the CLI says, whoever reads."""

    def saw(self, message: User) -> None: ...

    def turn_ended(self) -> None: ...

    def told_mode(self, mode: str) -> None: ...


class SavedBook(Struct):
    """What a later controller of the same CLI must know of its turns."""

    waiting: list[str]
    joined: list[str]
    is_running: bool
    session_id: str | None
    permission_mode: str | None
    complaint: str = ""
    taken: list[str] = []


#: Weak: what nobody can read any more is not kept for them.
Reader: TypeAlias = "ref[Exchange]"


class TurnBook:
    """The prompts that were sent and not answered, and the turn that runs."""

    def __init__(self, unread_bytes: int, *, shows_replays: bool) -> None:
        self._unread_bytes = unread_bytes
        self._shows_replays = shows_replays
        self._waiting: dict[str, Reader] = {}
        self._joined: list[str] = []
        #: Taken up between two turns: they are of the next.
        self._taken: list[str] = []
        #: How the latest turn ended.
        self._latest: Outcome | None = None
        self._readers: list[Reader] = []
        self._is_running = False
        self._is_new = False
        self._is_closed = False
        #: Whether a turn had begun, or a prompt waited, when it was closed.
        self.was_cut_off = False
        # Weak as well: whoever has dropped one has no use for what it would gather.
        self._taps: list[ref[Mailbox]] = []
        self._unprompted: WeakSet[asyncio.Queue[Exchange | None]] = WeakSet()
        #: What the CLI said in a result that answers nothing: why it will end, perhaps.
        self.complaint = ""
        self.session_id: str | None = None
        self.permission_mode: str | None = None
        self._watcher: Watcher | None = None
        #: Who takes messages of these types; all others are delivered.
        self.special: dict[type, Callable[[MessageReceived], None]] = {
            Init: self._began,
            Result: self._resulted,
            Status: self._told_status,
            User: self._said_by_user,
            CommandLifecycle: self._lived,
            Unknown: self._unknown,
        }

    def watch(self, watcher: Watcher) -> None:
        """Tell somebody, before others, of tool results, the ends of turns, and modes."""
        deliver_user, deliver_result = self.special[User], self.special[Result]

        def user(event: MessageReceived) -> None:
            assert isinstance(event.message, User)
            watcher.saw(event.message)
            deliver_user(event)

        def result(event: MessageReceived) -> None:
            watcher.turn_ended()
            deliver_result(event)

        self.special[User], self.special[Result] = user, result
        self._watcher = watcher

    # --- taking over

    def save(self) -> SavedBook:
        return SavedBook(
            list(self._waiting),
            list(self._joined),
            self._is_running,
            self.session_id,
            self.permission_mode,
            self.complaint,
            list(self._taken),
        )

    def restore(self, saved: SavedBook) -> None:
        """Go on with another's turns. Nobody reads them any more; their ends are known for it."""
        for uuid in saved.waiting:
            self.open(uuid)
        self._joined = [uuid for uuid in saved.joined if uuid in self._waiting]
        self._taken = [uuid for uuid in saved.taken if uuid in self._waiting]
        self._is_running = saved.is_running
        self.session_id, self.complaint = saved.session_id, saved.complaint
        self.permission_mode = saved.permission_mode

    @property
    def is_running(self) -> bool:
        return self._is_running

    @property
    def is_busy(self) -> bool:
        return self._is_running or bool(self._waiting)

    def open(self, uuid: str) -> Exchange:
        """A prompt is about to be sent."""
        exchange = Exchange(uuid, self._unread_bytes)
        self._waiting[uuid] = ref(exchange)
        self._between()
        return exchange

    def tap(self) -> Mailbox:
        """Gets every message from now on, until `untap`."""
        mailbox = Mailbox(self._unread_bytes)
        self._taps.append(ref(mailbox))
        if self._is_closed:
            mailbox.close()
        return mailbox

    def untap(self, mailbox: Mailbox) -> None:
        self._taps = [tap for tap in self._taps if tap() not in (None, mailbox)]

    def unprompted(self) -> asyncio.Queue[Exchange | None]:
        """Gets the turns that nobody prompted, from now on; None at the end."""
        queue: asyncio.Queue[Exchange | None] = asyncio.Queue()
        self._unprompted.add(queue)
        if self._is_closed:
            queue.put_nowait(None)
        return queue

    # --- what the CLI says

    def confirm_mode(self, mode: str | None) -> None:
        """The CLI has said in which permission mode it is."""
        if mode:
            self.permission_mode = mode
            if self._watcher:
                self._watcher.told_mode(mode)

    def _told_status(self, event: MessageReceived) -> None:
        assert isinstance(event.message, Status)
        self.confirm_mode(event.message.permission_mode)
        self.deliver(event)

    def deliver(self, event: MessageReceived) -> None:
        """A message that is not in `special`: to whoever reads now."""
        for reader in self._readers:
            exchange = reader()
            if exchange is not None:
                exchange.put(event)
        if self._taps:
            for tap in self._open_taps():
                tap.put(event)
        if self._is_new:
            self._learn_id(event.message)

    def _open_taps(self) -> list[Mailbox]:
        found = [mailbox for tap in self._taps if (mailbox := tap()) is not None]
        if len(found) < len(self._taps):
            self._taps = [ref(mailbox) for mailbox in found]
        return found

    def _learn_id(self, message: Message | Unknown) -> None:
        session_id = session_id_of(message)
        if session_id:
            self.session_id = session_id
            self._is_new = False

    def _began(self, event: MessageReceived) -> None:
        self._begin(event)
        self.deliver(event)

    def _begin(self, event: MessageReceived) -> None:
        init = event.message
        assert isinstance(init, Init)
        self.confirm_mode(init.permission_mode)
        self._is_new = True
        named, self._taken = init.user_message_uuids or self._taken, []
        if not named and NAMES_PROMPTS not in init.capabilities and not self._is_running:
            named = list(self._waiting)[:1]
        if not self._is_running:
            self._joined, self._readers = [], []
            self._is_running = True
        for uuid in named:
            self._join(uuid)
        if not self._joined and not self._readers:
            for queue in self._unprompted:
                exchange = Exchange(None, self._unread_bytes)
                self._readers.append(ref(exchange))
                queue.put_nowait(exchange)

    def _join(self, uuid: str) -> None:
        if uuid in self._waiting and uuid not in self._joined:
            self._joined.append(uuid)
            # It may read already: what comes between two turns goes to the next prompt.
            if self._waiting[uuid] not in self._readers:
                self._readers.append(self._waiting[uuid])

    def _take(self, uuid: str) -> None:
        """The CLI takes a prompt up: for the turn that runs, or for the next."""
        if self._is_running:
            self._join(uuid)
        elif uuid in self._waiting and uuid not in self._taken:
            self._taken.append(uuid)

    def _lived(self, event: MessageReceived) -> None:
        life = event.message
        assert isinstance(life, CommandLifecycle)
        match life.state:
            case "started":
                self._take(life.command_uuid)
            case "cancelled":
                self.take_back(life.command_uuid)
            case "completed":
                self._completed(life.command_uuid)
        self.deliver(event)

    def take_back(self, uuid: str) -> None:
        """The CLI will not answer this prompt, unless it is doing so."""
        if uuid in self._joined:
            return
        if reader := self._waiting.pop(uuid, None):
            self._taken = [one for one in self._taken if one != uuid]
            _end(reader, PromptCancelled("the prompt was taken back before its turn"))
        self._between()

    def _completed(self, uuid: str) -> None:
        """The CLI is done with a prompt, though no result may have named it."""
        if self._is_running:
            self._join(uuid)
        elif self._latest is not None and (reader := self._waiting.pop(uuid, None)):
            _end(reader, self._latest)
            self._between()

    def _said_by_user(self, event: MessageReceived) -> None:
        message = event.message
        assert isinstance(message, User)
        if message.is_replay and message.uuid in self._waiting:
            self._take(message.uuid)
            if not self._shows_replays:
                return
        self.deliver(event)

    def _resulted(self, event: MessageReceived) -> None:
        result = event.message
        assert isinstance(result, Result)
        ended = self._answered_by(result)
        if not ended and result.is_error:
            self.complaint = result.text[:MOST_COMPLAINT]
        for uuid in ended:
            self._join(uuid)
        self._is_new = True
        self.deliver(event)
        self._finish(ended, result, result.origin.kind if result.origin else None)

    def _answered_by(self, result: Result) -> list[str]:
        """The prompts that a result answers. One that names others answers none of ours."""
        if result.user_message_uuids:
            return [uuid for uuid in result.user_message_uuids if uuid in self._waiting]
        if result.user_message_uuid:  # the last, of those that were merged
            self._join(result.user_message_uuid)
            return list(self._joined) if result.user_message_uuid in self._joined else []
        return [] if result.origin else self._joined or list(self._waiting)[:1]

    def _unknown(self, event: MessageReceived) -> None:
        unknown = event.message
        assert isinstance(unknown, Unknown)
        self.deliver(event)
        if unknown.type != "result":
            return
        if self._watcher:
            self._watcher.turn_ended()
        reason = f"the turn ended with a result that can't be read: {unknown.reason}"
        failure = TurnFailed(reason, raw=unknown.raw)
        self._finish(self._joined or list(self._waiting)[:1], failure, None)

    def _finish(self, ended: list[str], outcome: Outcome, origin: str | None) -> None:
        readers = [self._waiting.pop(uuid) for uuid in ended]
        # A turn that nobody prompted has readers of its own, where anybody asked for such turns.
        readers += [one for one in self._readers if one not in self._waiting.values()]
        for reader in readers:
            _end(reader, outcome, origin)
        self._latest = outcome
        self._taken = [uuid for uuid in self._taken if uuid in self._waiting]
        self._is_running = False
        self._joined = []
        self._between()

    def _between(self) -> None:
        """What comes before the next turn begins belongs to the next prompt."""
        if not self._is_running:
            self._readers = list(self._waiting.values())[:1]

    def lose(self, event: MessageReceived, error: BaseException) -> None:
        """A message that nobody may see: whose it was is told, and turns begin and end with it."""
        match event.message:
            case Init():
                self._begin(event)
            case Result() as result:
                for uuid in self._answered_by(result):
                    self._join(uuid)
        readers = list(self._readers)
        if self._watcher and isinstance(event.message, Result):
            self._watcher.turn_ended()
        match event.message:
            case Result() as result:
                self._finish(self._answered_by(result), error, None)
            case Unknown(type="result"):
                self._finish(self._joined or list(self._waiting)[:1], error, None)
        for reader in readers:
            _end(reader, error)
        for tap in self._open_taps():
            tap.close(error)

    def lose_turn(self, error: BaseException) -> None:
        """No turn runs any more, and its end was not heard."""
        if self._is_running or self._waiting:
            self._finish(list(self._waiting), error, None)

    def close(self, error: BaseException) -> None:
        """Nothing at all will come any more."""
        self.was_cut_off = self.was_cut_off or self.is_busy
        for reader in (*self._waiting.values(), *self._readers):
            _end(reader, error)
        self._waiting, self._joined, self._taken, self._readers = {}, [], [], []
        self._is_running = False
        self._is_closed = True
        for tap in self._open_taps():
            tap.close()
        for queue in self._unprompted:
            queue.put_nowait(None)


def _end(reader: Reader, outcome: Outcome, origin: str | None = None) -> None:
    exchange = reader()
    if exchange is not None:
        exchange.origin = origin
        exchange.end(outcome)
