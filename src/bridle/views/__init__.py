"""Folds over a session's events: what people and programs look at. Pure.

`read` decodes an event once; `transcript`, `usage`, `files` and `timeline` each have a `fold` that
takes it into their state. `stream` has the words of a session's stream, `entries` those of a
transcript.
"""

from . import entries, files, stream, timeline, transcript, usage
from .entries import Changes, TranscriptEntry
from .files import FilesState, FileUse
from .reading import Reading, read
from .step import TranscriptState
from .timeline import Span, Timeline, TimelineState
from .transcript import Transcript
from .usage import LaunchUsage, ModelUse, Tokens, Usage, UsageState, usage_of

__all__ = [
    "Changes",
    "FileUse",
    "FilesState",
    "LaunchUsage",
    "ModelUse",
    "Reading",
    "Span",
    "Timeline",
    "TimelineState",
    "Tokens",
    "Transcript",
    "TranscriptEntry",
    "TranscriptState",
    "Usage",
    "UsageState",
    "entries",
    "files",
    "read",
    "stream",
    "timeline",
    "transcript",
    "usage",
    "usage_of",
]
