"""Every error that Bridle raises, in one tree, split by whose fault it is.

    BridleError
    ├── ProtocolError
    │   ├── LocalError                 our side broke the rules; nothing was written
    │   │   ├── InvalidRequest         a request that the CLI would not survive or understand
    │   │   ├── InvalidAnswer          an answer of the wrong shape for its request
    │   │   ├── NotPending             no such request waits for an answer
    │   │   │   ├── AlreadyAnswered
    │   │   │   └── AlreadyWithdrawn
    │   │   ├── InvalidState           a saved connection that can't be restored
    │   │   └── ConnectionEnded        the CLI's output has ended
    │   └── ControlFailed              the CLI refused what we asked of it
    ├── LaunchError                    the CLI could not be started; the text says what to do
    │   ├── InvalidLaunch              an option, command or folder that can't be
    │   ├── CliNotFound
    │   ├── CliTooOld
    │   └── LaunchFailed               the system would not start it
    ├── SessionError                   something went wrong in a session
    │   ├── SessionEnded               the CLI is gone: exit code, signal, the end of its stderr
    │   ├── SessionClosed              we have stopped it ourselves
    │   ├── RequestTimedOut            the CLI did not answer in time; also a TimeoutError
    │   ├── NotSupported               this version of the CLI would never answer
    │   ├── UnreadableAnswer           the CLI answered what can't be understood
    │   ├── TurnFailed                 a turn that ended in an error; carries its result
    │   ├── PromptCancelled            a queued prompt was taken back before its turn
    │   ├── CommitFailed               what happened could not be written down
    │   ├── InvalidTool                a function that can't be offered as a tool
    │   └── InvalidTranscript          a stored session that is not there or can't be read
    ├── JournalError                   something can't be stored or read back
    │   ├── InvalidEntry               a name, an event or a document that can't be stored at all
    │   ├── WrongSequence              the stream has another last event than was expected
    │   ├── WrongRevision              the record has changed since it was read
    │   ├── UnreadableRecord           a stored document that is not of the type asked for
    │   ├── BlobLost                   a large payload that is gone or not what was stored
    │   ├── InvalidArchive             a file that is no archive, or a damaged one
    │   ├── JournalClosed              we have closed it ourselves
    │   ├── JournalUnwritable          it can't be written now; what was acknowledged is safe
    │   │   └── DiskFull               the same will work again when there is space
    │   └── JournalUnusable            it can't be opened or read; the text says what to do
    │       ├── JournalInUse           another process has it
    │       ├── JournalTooNew          a newer Bridle has written it
    │       └── JournalCorrupt         the file is damaged, or is no journal
    ├── PolicyError                    a policy that can't be used; nothing of it is in force
    │   ├── InvalidRule                a rule that says nothing, or not what was meant
    │   └── InvalidPolicy              a file with a mistake in it: which file, line, and why
    ├── ApprovalError                  its branch is in `bridle.approvals.errors`
    └── KitError                       the testing kit was given something it can't work with
        ├── InvalidScript              a scenario, model script or recording with a mistake in it
        ├── PortInUse
        ├── CliUnavailable             the CLI is not there and could not be installed
        ├── UnexpectedTraffic          a replayed or scripted peer was sent something else
        └── TimedOut                   what a test waited for did not come

The errors of the protocol carry their data as attributes, so that callers need not parse text.
"""

from __future__ import annotations

import os


def words_of(error: BaseException) -> str:
    """An error's type and text. That it can't be told must never be the reason why it is not."""
    try:
        text = str(error).encode("utf-8", "replace").decode()
    except Exception:  # noqa: BLE001 - somebody's __str__ has a mistake in it
        return type(error).__name__
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class BridleError(Exception):
    """The root of everything that Bridle raises on purpose."""


class ProtocolError(BridleError):
    """Something went wrong in the control protocol."""


class LocalError(ProtocolError):
    """Our side broke the rules. Nothing was written to the CLI."""


class InvalidRequest(LocalError):
    """A control request or user message that must not be written."""

    def __init__(self, subtype: str, reason: str) -> None:
        super().__init__(f"{subtype}: {reason}")
        self.subtype = subtype
        self.reason = reason


class InvalidAnswer(LocalError):
    """An answer whose shape does not fit the request that it answers."""

    def __init__(self, request_id: str, reason: str) -> None:
        super().__init__(f"answer to {request_id}: {reason}")
        self.request_id = request_id
        self.reason = reason


class NotPending(LocalError):
    """No request with this id waits for an answer."""

    why = "was never asked"

    def __init__(self, request_id: str) -> None:
        super().__init__(f"request {request_id} {self.why}")
        self.request_id = request_id


class AlreadyAnswered(NotPending):
    """The first answer won; this one was not written."""

    why = "was already answered"


class AlreadyWithdrawn(NotPending):
    """The CLI took the request back; it must not be answered any more."""

    why = "was withdrawn by the CLI"


class InvalidState(LocalError):
    """A saved connection state that this version can't restore."""


class ConnectionEnded(LocalError):
    """The CLI's output has ended: nothing can be asked or answered any more."""


class ControlFailed(ProtocolError):
    """The CLI answered a control request with an error."""

    def __init__(self, request_id: str, subtype: str, detail: str, code: str | None = None) -> None:
        super().__init__(f"{subtype}: {detail}" + (f" ({code})" if code else ""))
        self.request_id = request_id
        self.subtype = subtype
        self.detail = detail
        self.code = code


class LaunchError(BridleError):
    """The CLI could not be started; the text says what to do."""


class InvalidLaunch(LaunchError):
    """An option, a command or a folder with which no CLI can be started."""


class CliNotFound(LaunchError):
    """There is no CLI where it was looked for."""


class CliTooOld(LaunchError):
    """The CLI that was found is too old to be controlled."""


class LaunchFailed(LaunchError):
    """The system would not start the CLI."""


class SessionError(BridleError):
    """Something went wrong in a session."""


class SessionEnded(SessionError):
    """The CLI is gone, and with it what was waited for (`request`, where that was a request)."""

    def __init__(
        self,
        how: str,
        *,
        exit_code: int | None = None,
        signal: int | None = None,
        stderr: str = "",
        request: str | None = None,
    ) -> None:
        what = f"{request}: " if request else ""
        words = stderr.strip()[-1000:]
        super().__init__(f"{what}the CLI {how}" + (f"; its last words: {words}" if words else ""))
        self.how = how
        self.exit_code = exit_code
        self.signal = signal
        self.stderr = stderr
        self.request = request

    def while_asking(self, request: str) -> SessionEnded:
        """The same for one request that got no answer."""
        return SessionEnded(
            self.how,
            exit_code=self.exit_code,
            signal=self.signal,
            stderr=self.stderr,
            request=request,
        )


class SessionClosed(SessionError):
    """The session was stopped by us: nothing more can be sent or asked."""


class RequestTimedOut(SessionError, TimeoutError):
    """The CLI did not answer a request in its time. The request was taken back."""

    def __init__(self, subtype: str, seconds: float, stderr: str = "") -> None:
        super().__init__(f"{subtype}: the CLI did not answer in {seconds:g} s")
        self.subtype = subtype
        self.seconds = seconds
        self.stderr = stderr


class NotSupported(SessionError):
    """This version of the CLI never answers such a request; nothing was written."""

    def __init__(self, subtype: str, version: str | None, since: str) -> None:
        super().__init__(f"{subtype}: Claude Code {version} does not know it; use {since} or newer")
        self.subtype = subtype
        self.version = version
        self.since = since


class UnreadableAnswer(SessionError):
    """The CLI answered a request with something of another shape; `raw` is what it was."""

    def __init__(self, subtype: str, reason: str, raw: bytes) -> None:
        super().__init__(f"{subtype}: the answer can't be read: {reason}")
        self.subtype = subtype
        self.reason = reason
        self.raw = raw


class TurnFailed(SessionError):
    """A turn that ended in an error. `result` is the CLI's own word on it (None: unreadable)."""

    def __init__(self, reason: str, result: object = None, raw: bytes = b"") -> None:
        super().__init__(reason)
        self.result = result
        self.raw = raw


class PromptCancelled(SessionError):
    """A queued prompt was taken back before its turn began."""


class CommitFailed(SessionError):
    """What happened could not be written down, so nobody may act on it."""


class InvalidTool(SessionError):
    """A Python function that can't be offered to the model as a tool."""


class InvalidTranscript(SessionError):
    """A stored session that is not there, or that can't be read."""


class JournalError(BridleError):
    """Something can't be stored, or can't be read back."""


class InvalidEntry(JournalError):
    """A name, an event or a document that can't be stored. Nothing was."""


class WrongSequence(JournalError):
    """The stream's last event is not the expected one: somebody else has written, or a retry."""

    def __init__(self, stream: str, expected: int, actual: int) -> None:
        super().__init__(
            f"stream {stream!r} is at {actual}, not at {expected}: nothing was changed;"
            " read on from there and decide again"
        )
        self.stream = stream
        self.expected = expected
        self.actual = actual


class WrongRevision(JournalError):
    """The record is not at the expected revision (0: it is not there). Nothing was changed."""

    def __init__(self, bucket: str, key: str, expected: int, actual: int) -> None:
        found = f"is at revision {actual}" if actual else "does not exist"
        wanted = f"revision {expected}" if expected else ("none" if actual else "one")
        super().__init__(
            f"record {bucket}/{key} {found} where {wanted} was expected:"
            " get it again and decide again, as `Bucket.change` does"
        )
        self.bucket = bucket
        self.key = key
        self.expected = expected
        self.actual = actual


class UnreadableRecord(JournalError):
    """A stored document that does not fit the type of its bucket."""

    def __init__(self, bucket: str, key: str, reason: str) -> None:
        super().__init__(
            f"record {bucket}/{key} is not of its bucket's type: {reason};"
            " `journal.records` has its bytes and its revision, from which it can be put anew"
        )
        self.bucket = bucket
        self.key = key
        self.reason = reason


class BlobLost(JournalError):
    """A large payload that is not there any more, or is not what was stored."""

    def __init__(self, digest: str, reason: str) -> None:
        super().__init__(f"blob {digest[:12]}… {reason}")
        self.digest = digest
        self.reason = reason


class InvalidArchive(JournalError):
    """A file that is no archive of a stream, or one that was cut or changed."""


class JournalClosed(JournalError):
    """The journal was closed."""


class JournalUnwritable(JournalError):
    """The journal can't be written now. Nothing of this was stored; what was before is safe."""


class DiskFull(JournalUnwritable):
    """There is no space. The same will work again as soon as there is some."""


class JournalUnusable(JournalError):
    """The journal can't be opened or read; the text says what to do."""


class JournalInUse(JournalUnusable):
    """Somebody has the journal open (`pid`, where it is known; it may be this very process)."""

    def __init__(self, path: str, pid: int | None) -> None:
        who = f"process {pid}" if pid else "another process"
        problem = f"is in use by {who}: stop it, or choose another home"
        if pid == os.getpid():
            problem = "is open in this process already: use that one, or close it first"
        super().__init__(f"the journal {path} {problem}")
        self.path = path
        self.pid = pid


class JournalTooNew(JournalUnusable):
    """A newer Bridle has written the journal."""

    def __init__(self, path: str, version: int, known: int) -> None:
        super().__init__(
            f"the journal {path} has schema {version} and this Bridle knows up to {known}:"
            " use the newer Bridle that wrote it, or choose another home"
        )
        self.path = path
        self.version = version
        self.known = known


class JournalCorrupt(JournalUnusable):
    """The journal's file is damaged, or is something else."""


class PolicyError(BridleError):
    """A policy can't be used."""


class InvalidRule(PolicyError):
    """A rule that says nothing, or not what was meant."""

    def __init__(self, rule: str, reason: str) -> None:
        super().__init__(f"{rule!r} is no rule: {reason}")
        self.rule = rule
        self.reason = reason


class InvalidPolicy(PolicyError):
    """A policy file with a mistake in it."""

    def __init__(self, source: str, line: int | None, reason: str) -> None:
        where = f"{source}:{line}" if line else source
        super().__init__(f"{where}: {reason}")
        self.source = source
        self.line = line
        self.reason = reason


class KitError(BridleError):
    """The testing kit was given something that it can't work with; the text says what to do."""


class InvalidScript(KitError):
    """A scenario, a model's script or a recording has a mistake in it."""


class PortInUse(KitError):
    """Another program listens on the port that was asked for."""


class CliUnavailable(KitError):
    """The Claude Code CLI is not there and could not be installed."""


class UnexpectedTraffic(KitError):
    """A scripted or replayed peer was sent something that its script does not have."""


class TimedOut(KitError):
    """What a test waited for did not come in its time."""
