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
    │   ├── InvalidAnchors             a copy of the anchors that is none
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
    ├── SupervisorError                it can't be done with a session, and nothing of it was
    │   ├── UnknownSession
    │   ├── NameTaken
    │   ├── NotPossible                not in the session's state; the text says what to do instead
    │   ├── LimitReached               too many sessions below one, or too deep
    │   ├── WiderThanParent            an agent would give a session more than it has itself
    │   ├── BudgetTooSmall             it does not fit into what is left above it
    │   ├── InvalidLimit               a limit that can't be
    │   ├── MissingVariables           values that were given by hand are needed again
    │   ├── ForeignInput               somebody else has written to an agent's input
    │   ├── HomeInUse                  another process looks after these sessions
    │   ├── HomeNotPrivate             others could change what is in it
    │   └── Asleep                     nobody does: they can only be looked at
    ├── ApprovalError                  its branch is in `bridle.approvals.errors`
    ├── ServerError                    its branch is in `bridle.server.errors`
    ├── CommandError                   its branch is in `bridle.cli.errors`
    ├── InvalidSetting                 a value that a setting can't have: in `bridle.config`
    └── KitError                       the testing kit was given something it can't work with
        ├── InvalidScript              a scenario, model script or recording with a mistake in it
        ├── PortInUse
        ├── CliUnavailable             the CLI is not there and could not be installed
        ├── UnexpectedTraffic          a replayed or scripted peer was sent something else
        └── TimedOut                   what a test waited for did not come

The errors of the protocol carry their data as attributes, so that callers need not parse text.
"""

from __future__ import annotations

from .journal import (
    BlobLost,
    DiskFull,
    InvalidAnchors,
    InvalidArchive,
    InvalidEntry,
    JournalClosed,
    JournalCorrupt,
    JournalError,
    JournalInUse,
    JournalTooNew,
    JournalUnusable,
    JournalUnwritable,
    UnreadableRecord,
    WrongRevision,
    WrongSequence,
)
from .kit import CliUnavailable, InvalidScript, KitError, PortInUse, TimedOut, UnexpectedTraffic
from .policy import InvalidPolicy, InvalidRule, PolicyError
from .protocol import (
    AlreadyAnswered,
    AlreadyWithdrawn,
    ConnectionEnded,
    ControlFailed,
    InvalidAnswer,
    InvalidRequest,
    InvalidState,
    LocalError,
    NotPending,
    ProtocolError,
)
from .root import BridleError, words_of
from .session import (
    CliNotFound,
    CliTooOld,
    CommitFailed,
    InvalidLaunch,
    InvalidTool,
    InvalidTranscript,
    LaunchError,
    LaunchFailed,
    NotSupported,
    PromptCancelled,
    RequestTimedOut,
    SessionClosed,
    SessionEnded,
    SessionError,
    TurnFailed,
    UnreadableAnswer,
)
from .supervisor import (
    Asleep,
    BudgetTooSmall,
    ForeignInput,
    HomeInUse,
    HomeNotPrivate,
    InvalidLimit,
    LimitReached,
    MissingVariables,
    NameTaken,
    NotPossible,
    SupervisorError,
    UnknownSession,
    WiderThanParent,
)

__all__ = [
    "AlreadyAnswered",
    "AlreadyWithdrawn",
    "Asleep",
    "BlobLost",
    "BridleError",
    "BudgetTooSmall",
    "CliNotFound",
    "CliTooOld",
    "CliUnavailable",
    "CommitFailed",
    "ConnectionEnded",
    "ControlFailed",
    "DiskFull",
    "ForeignInput",
    "HomeInUse",
    "HomeNotPrivate",
    "InvalidAnchors",
    "InvalidAnswer",
    "InvalidArchive",
    "InvalidEntry",
    "InvalidLaunch",
    "InvalidLimit",
    "InvalidPolicy",
    "InvalidRequest",
    "InvalidRule",
    "InvalidScript",
    "InvalidState",
    "InvalidTool",
    "InvalidTranscript",
    "JournalClosed",
    "JournalCorrupt",
    "JournalError",
    "JournalInUse",
    "JournalTooNew",
    "JournalUnusable",
    "JournalUnwritable",
    "KitError",
    "LaunchError",
    "LaunchFailed",
    "LimitReached",
    "LocalError",
    "MissingVariables",
    "NameTaken",
    "NotPending",
    "NotPossible",
    "NotSupported",
    "PolicyError",
    "PortInUse",
    "PromptCancelled",
    "ProtocolError",
    "RequestTimedOut",
    "SessionClosed",
    "SessionEnded",
    "SessionError",
    "SupervisorError",
    "TimedOut",
    "TurnFailed",
    "UnexpectedTraffic",
    "UnknownSession",
    "UnreadableAnswer",
    "UnreadableRecord",
    "WiderThanParent",
    "WrongRevision",
    "WrongSequence",
    "words_of",
]
