"""Stored sessions: what the CLI has written down, read again."""

from __future__ import annotations

import bridle
from bridle.protocol.content import tool_results
from bridle.protocol.messages import Assistant, User
from bridle.protocol.system import CompactBoundary
from bridle.session.transcripts import StoredEntry
from bridle.testing import Conversation, Turn, tool_use

from .lab import BASH, Lab
from .talk import Judge, hear, prompts


async def test_stored_session(lab: Lab) -> None:
    """A session that has run is listed, and read with all that was said"""
    async with lab.session([Turn("Running.", BASH), "Done."], approver=Judge()) as talk:
        turn = await talk.session.send("write the file")
        heard = await hear(turn)
    (stored,) = bridle.list_sessions(lab.cwd, lab.config_dir)
    assert (stored.id, stored.first_prompt) == (talk.session.id, "write the file")
    assert stored.cwd == str(lab.cwd)
    transcript = bridle.read_transcript(stored)
    assert transcript.unreadable == 0
    said = [entry for entry in transcript.branch() if entry.type in ("user", "assistant")]
    assert [said[0].uuid, said[0].parent] == [turn.uuid, None]
    told = [message.uuid for message in heard.messages if isinstance(message, User | Assistant)]
    assert [entry.uuid for entry in said[1:]] == told
    assert all(type(entry.message) in (User, Assistant) for entry in said)


async def test_stored_parallel(lab: Lab) -> None:
    """The results of two tools of one message: what each hangs on in the stored tree"""
    for name in ("a.txt", "b.txt"):
        (lab.cwd / name).write_text(f"inside {name}\n")
    reads = [tool_use("Read", file_path=str(lab.cwd / name)) for name in ("a.txt", "b.txt")]
    async with lab.session([Turn("Reading.", *reads), "Done."], approver=Judge()) as talk:
        await talk.say("read both")
    transcript = bridle.read_transcript(str(talk.session.id), lab.cwd, lab.config_dir)
    entries = {entry.uuid: entry for entry in transcript.entries}
    results = [entry for entry in transcript.entries if _is_result(entry)]
    parents = [entries[str(entry.parent)].type for entry in results]
    in_a_row = parents == ["assistant", "user"]
    assert in_a_row or parents == ["assistant", "assistant"]
    (branch,) = transcript.branches()
    assert [entry for entry in branch if _is_result(entry)] == results
    lab.saw("the second on the first" if in_a_row else "each on its own call")


async def test_stored_compact(lab: Lab) -> None:
    """/compact: the session goes on under its id, and is stored as one branch"""
    async with lab.session(Conversation(["One."], then="A summary.")) as talk:
        first = await talk.say("the horse")
        compacted = await talk.say("/compact")
        assert len(compacted.of(CompactBoundary)) == 1
        last = await talk.say("the cow")
        assert last.result.session_id == first.result.session_id
        assert "A summary." in talk.model.requests[-1].everything
    transcript = bridle.read_transcript(str(talk.session.id), lab.cwd, lab.config_dir)
    (branch,) = transcript.branches()
    said = prompts(branch)
    assert (said[0], said[-1]) == ("the horse", "the cow")


def _is_result(entry: StoredEntry) -> bool:
    return isinstance(entry.message, User) and bool(tool_results(entry.message))
