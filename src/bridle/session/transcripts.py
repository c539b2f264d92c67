"""The sessions that Claude Code itself keeps on disk: listed, read, and their branches followed.

Owns where they are and how entries hang together. Reads only; an entry that can't be read is
counted and passed over.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import msgspec
from msgspec import Struct, field

from ..errors import InvalidTranscript
from ..protocol.blocks import ToolUseBlock
from ..protocol.careful import read_line
from ..protocol.codec import DECODE_ERRORS
from ..protocol.content import tool_results
from ..protocol.messages import Assistant, Message, User
from ..protocol.unknown import Unknown

#: Where the first prompt and the folder stand, if anywhere.
HEAD_LINES = 200
#: The CLI cuts a long name somewhere behind this, and adds a word that tells it from others.
SURE_OF_NAME = 150
SUBAGENT = "agent-"


class StoredSession(Struct, frozen=True):
    """A session that can be read, resumed (`connect(resume=id)`) or forked."""

    id: str
    path: Path
    modified: float
    size: int
    cwd: str | None = None
    #: The beginning of the conversation: the first words of the user.
    first_prompt: str = ""


class StoredEntry(Struct, frozen=True):
    """One entry of a transcript; `message` is what was said, where the entry is a message."""

    uuid: str
    parent: str | None
    type: str
    timestamp: str
    is_sidechain: bool
    message: Message | Unknown
    raw: bytes


class Transcript(Struct, frozen=True):
    """A stored session: a tree of entries, because a session can be resumed at any message."""

    id: str
    path: Path
    entries: list[StoredEntry]
    #: Lines that could not be read.
    unreadable: int = 0

    def leaves(self) -> list[StoredEntry]:
        """The last entry of each branch, in the order in which they were written."""
        groups = self._groups()
        parents = {entry.parent for entry in self.entries}
        ends: dict[str, StoredEntry] = {}
        for entry in self.entries:
            if entry.uuid not in parents:
                ends[groups[entry.uuid]] = entry
        # Of tools that ran in parallel only one result has the rest of the conversation below it.
        going_on = {
            groups[entry.parent]
            for entry in self.entries
            if entry.parent in groups and groups[entry.parent] != groups[entry.uuid]
        }
        return [entry for group, entry in ends.items() if group not in going_on]

    def branch(self, uuid: str | None = None) -> list[StoredEntry]:
        """From the beginning to one entry; without one, to the entry that was written last."""
        if not self.entries:
            return []
        known = {entry.uuid: entry for entry in self.entries}
        last = known.get(uuid or self.entries[-1].uuid)
        if last is None:
            raise InvalidTranscript(f"{self.path} has no entry {uuid}")
        found: dict[str, StoredEntry] = {}
        at: StoredEntry | None = last
        while at and at.uuid not in found:
            found[at.uuid] = at
            at = known.get(at.parent or "")
        groups = self._groups()
        whole = {groups[entry.uuid] for entry in found.values()}
        if last not in self.leaves():
            whole.discard(groups[last.uuid])
        return [e for e in self.entries if e.uuid in found or groups[e.uuid] in whole]

    def _groups(self) -> dict[str, str]:
        """Entries that belong to one answer of the model: its blocks, and the results of its tools.

        Each block and each result is an entry of its own, and hangs below any of the others.
        """
        groups: dict[str, str] = {}
        parts: dict[str, set[str]] = {}
        for entry in self.entries:
            group = groups.get(entry.parent or "", "")
            # Its message or its tool must be that of what it hangs below: ids alone may repeat.
            if not parts.get(group, set()) & _answers_to(entry):
                group = entry.uuid
            groups[entry.uuid] = group
            parts.setdefault(group, set()).update(_part_of(entry))
        return groups

    def branches(self) -> list[list[StoredEntry]]:
        """Every branch, from the beginning to its leaf."""
        return [self.branch(leaf.uuid) for leaf in self.leaves()]


def list_sessions(
    cwd: str | os.PathLike[str] = ".", config_dir: str | os.PathLike[str] | None = None
) -> list[StoredSession]:
    """The stored sessions of a folder, the newest first."""
    here = Path(cwd).resolve()
    paths = (path for folder in _folders(here, config_dir) for path in folder.glob("*.jsonl"))
    found = [one for path in paths if (one := _listed(path, here))]
    return sorted(found, key=lambda one: one.modified, reverse=True)


def read_transcript(
    session: str | os.PathLike[str] | StoredSession,
    cwd: str | os.PathLike[str] = ".",
    config_dir: str | os.PathLike[str] | None = None,
) -> Transcript:
    """A stored session, by its id (of this folder), its path, or as `list_sessions` gave it."""
    if isinstance(session, StoredSession):
        path = session.path
    elif isinstance(session, str) and re.fullmatch(r"[\w-]+", session):
        folders = _folders(Path(cwd).resolve(), config_dir)
        paths = [folder / f"{session}.jsonl" for folder in folders]
        path = next((path for path in paths if path.exists()), paths[0])
    else:
        path = Path(session)
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise InvalidTranscript(f"there is no stored session {session}: {error}") from error
    read = [_entry(line) for line in lines if line.strip()]
    entries = [entry for entry in read if isinstance(entry, StoredEntry)]
    return Transcript(path.stem, path, entries, sum(entry is None for entry in read))


def _part_of(entry: StoredEntry) -> set[str]:
    """What others may refer to: the id of the model's message, and of the tools that it calls."""
    if not isinstance(entry.message, Assistant):
        return set()
    said = entry.message.message
    return {said.id, *(block.id for block in said.content if isinstance(block, ToolUseBlock))}


def _answers_to(entry: StoredEntry) -> set[str]:
    """What it refers to: its message where it is a block, its tool where it is a result."""
    match entry.message:
        case Assistant() as said:
            return {said.message.id}
        case User() as said:
            return {block.tool_use_id for block in tool_results(said)}
        case _:
            return set()


class _Stored(Struct, rename="camel"):
    type: str = ""
    uuid: str | None = None
    parent_uuid: str | None = None
    #: After a compaction the tree begins anew, and this tells where it was before.
    logical_parent_uuid: str | None = None
    timestamp: str = ""
    is_sidechain: bool = False
    is_meta: bool = False
    cwd: str | None = None
    message: msgspec.Raw = field(default_factory=msgspec.Raw)


_STORED: msgspec.json.Decoder[_Stored] = msgspec.json.Decoder(_Stored)


def _entry(line: bytes) -> StoredEntry | bool | None:
    """An entry; True for a line that is none (a queue operation, a cost); None if unreadable."""
    try:
        stored = _STORED.decode(line)
    except DECODE_ERRORS:
        return None
    if stored.uuid is None:
        return True
    message = read_line(line).decoded if stored.message else None
    if not isinstance(message, Message | Unknown):
        message = Unknown(stored.type, line, "not a message")
    parent = stored.parent_uuid or stored.logical_parent_uuid
    return StoredEntry(
        stored.uuid, parent, stored.type, stored.timestamp, stored.is_sidechain, message, line
    )


def _listed(path: Path, here: Path) -> StoredSession | None:
    if path.name.startswith(SUBAGENT):
        return None
    cwd, prompt, is_empty = None, "", True
    try:
        status = path.stat()
        with path.open("rb") as file:
            for stored in _heads(file):
                is_empty = False
                cwd, prompt = cwd or stored.cwd, prompt or _prompt(stored)
                if cwd and prompt:
                    break
    except OSError:
        return None
    # Different folders may share a name on disk (`a.b`, `a-b`): what was written down decides.
    if is_empty or (cwd and Path(cwd).resolve() != here):
        return None
    return StoredSession(path.stem, path, status.st_mtime, status.st_size, cwd, prompt)


def _heads(lines: Iterable[bytes]) -> Iterator[_Stored]:
    for line in islice(lines, HEAD_LINES):
        try:
            yield _STORED.decode(line)
        except DECODE_ERRORS:
            continue


def _prompt(stored: _Stored) -> str:
    if stored.type != "user" or stored.is_meta or stored.is_sidechain:
        return ""
    line = b'{"type":"user","message":' + bytes(stored.message) + b"}"
    said = read_line(line).decoded
    if not isinstance(said, User):
        return ""
    content = said.message.content
    texts = [content] if isinstance(content, str) else [getattr(b, "text", "") for b in content]
    prompt = " ".join(filter(None, texts))[:500]
    # Slash commands are stored like prompts, in tags.
    return "" if prompt.startswith(("<command-", "<local-command-")) else prompt


def _projects(config_dir: str | os.PathLike[str] | None) -> Path:
    given = config_dir or os.environ.get("CLAUDE_CONFIG_DIR")
    return (Path(given) if given else Path.home() / ".claude") / "projects"


def _folders(cwd: Path, config_dir: str | os.PathLike[str] | None) -> list[Path]:
    """Where the sessions of a folder may be."""
    name = re.sub(r"[^A-Za-z0-9]", "-", str(cwd))
    projects = _projects(config_dir)
    cut = name[:SURE_OF_NAME]
    return (
        [projects / name] if name == cut else sorted(projects.glob(f"{cut}*")) or [projects / cut]
    )
