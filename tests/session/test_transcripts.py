"""Claude's own stored sessions: listed, read, their branches followed."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from bridle import list_sessions, read_transcript
from bridle.errors import InvalidTranscript
from bridle.protocol.messages import Assistant, User
from bridle.protocol.unknown import Unknown

ID = "11111111-2222-4333-8444-555555555555"


def user(uuid: str, parent: str | None, text: str, cwd: Path, **more: Any) -> dict[str, Any]:
    message = {"role": "user", "content": text}
    known = {"type": "user", "uuid": uuid, "parentUuid": parent, "message": message}
    return {**known, "cwd": str(cwd), "timestamp": "2026-01-01T00:00:00Z", **more}


def assistant(uuid: str, parent: str, text: str) -> dict[str, Any]:
    message = {
        "id": f"m{text}",
        "model": "m",
        "role": "assistant",
        "content": [{"type": "text", "text": text}],
    }
    return {"type": "assistant", "uuid": uuid, "parentUuid": parent, "message": message}


class Store:
    """A folder of work, and Claude's folder of sessions for it."""

    def __init__(self, tmp_path: Path) -> None:
        self.work = tmp_path / "my.app"
        self.work.mkdir()
        self.config = tmp_path / "claude"
        name = str(self.work).replace("/", "-").replace(".", "-").replace("_", "-")
        self.folder = self.config / "projects" / name
        self.folder.mkdir(parents=True)

    def write(self, *entries: Any, name: str = ID, at: int = 0) -> Path:
        path = self.folder / f"{name}.jsonl"
        lines = [e if isinstance(e, str) else json.dumps(e) for e in entries]
        path.write_text("\n".join(lines) + "\n")
        os.utime(path, (at, at))
        return path

    def list(self) -> Any:
        return list_sessions(self.work, self.config)

    def read(self, session: Any = ID) -> Any:
        return read_transcript(session, self.work, self.config)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def texts(branch: Any) -> list[str]:
    found = []
    for entry in branch:
        content = entry.message.message.content
        found.append(content if isinstance(content, str) else content[0].text)
    return found


def test_sessions_of_a_folder_are_listed_the_newest_first(store: Store) -> None:
    queue = {"type": "queue-operation", "operation": "dequeue"}
    store.write(queue, user("1", None, "old", store.work), name="old", at=1)
    store.write(
        user("1", None, "meta", store.work, isMeta=True), user("2", "1", "new", store.work), at=2
    )
    store.write(user("1", None, "Warmup", store.work, isSidechain=True), name="agent-a1", at=3)
    store.write("", name="empty", at=4)
    new, old = store.list()
    assert (new.id, new.first_prompt, new.modified) == (ID, "new", 2)
    assert (old.id, old.first_prompt, old.cwd) == ("old", "old", str(store.work))


def test_a_folder_whose_name_looks_the_same_on_disk_has_its_own_sessions(store: Store) -> None:
    other = store.work.parent / "my-app"
    other.mkdir()
    store.write(user("1", None, "mine", store.work))
    store.write(user("1", None, "theirs", other), name="theirs")
    assert [one.first_prompt for one in store.list()] == ["mine"]
    assert [one.first_prompt for one in list_sessions(other, store.config)] == ["theirs"]


def test_a_folder_without_sessions_has_none(tmp_path: Path) -> None:
    assert list_sessions(tmp_path, tmp_path / "nothing") == []


def test_the_config_folder_is_claudes_own(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.write(user("1", None, "hi", store.work))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(store.config))
    assert len(list_sessions(store.work)) == 1
    monkeypatch.delenv("CLAUDE_CONFIG_DIR")
    monkeypatch.setenv("HOME", str(store.config.parent))
    store.config.rename(store.config.parent / ".claude")
    assert len(list_sessions(store.work)) == 1


def test_a_session_is_read_by_id_by_path_and_as_listed(store: Store) -> None:
    path = store.write(user("1", None, "hi", store.work), assistant("2", "1", "Hello."))
    for session in (ID, path, store.list()[0]):
        transcript = store.read(session)
        assert transcript.id == ID
        assert [type(entry.message) for entry in transcript.entries] == [User, Assistant]


def test_branches_are_followed(store: Store) -> None:
    store.write(
        user("1", None, "a", store.work),
        assistant("2", "1", "b"),
        user("3", "2", "c", store.work),
        assistant("4", "3", "d"),
        user("5", "2", "e", store.work),
        assistant("6", "5", "f"),
    )
    transcript = store.read()
    assert [texts(branch) for branch in transcript.branches()] == [list("abcd"), list("abef")]
    assert texts(transcript.branch()) == list("abef")
    assert texts(transcript.branch("3")) == list("abc")
    with pytest.raises(InvalidTranscript, match="no entry"):
        transcript.branch("nope")


def test_a_compacted_session_goes_on_where_it_was(store: Store) -> None:
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": "2", "parentUuid": None}
    store.write(
        user("1", None, "a", store.work),
        {**boundary, "logicalParentUuid": "1"},
        user("3", "2", "b", store.work),
    )
    assert [entry.uuid for entry in store.read().branch()] == ["1", "2", "3"]


def test_what_can_not_be_read_is_counted_and_passed_over(store: Store) -> None:
    attachment = {"type": "attachment", "uuid": "2", "parentUuid": "1", "attachment": {}}
    store.write("{half", "[]", user("1", None, "a", store.work), attachment, {"type": "mode"})
    transcript = store.read()
    assert transcript.unreadable == 2
    assert [entry.type for entry in transcript.entries] == ["user", "attachment"]
    assert isinstance(transcript.entries[1].message, Unknown)


def test_entries_that_are_their_own_ancestors_end(store: Store) -> None:
    store.write(user("1", "2", "a", store.work), user("2", "1", "b", store.work))
    assert len(store.read().branch()) == 2
    assert store.read().branches() == []


def test_an_empty_transcript_has_no_branch(store: Store) -> None:
    store.write({"type": "mode"})
    assert store.read().branch() == []


def test_a_session_that_is_not_there_is_told(store: Store) -> None:
    with pytest.raises(InvalidTranscript, match="no stored session nope"):
        store.read("nope")


def call(uuid: str, parent: str, *tools: str) -> dict[str, Any]:
    content = [{"type": "tool_use", "id": tool, "name": "Read", "input": {}} for tool in tools]
    message = {"id": "M", "model": "m", "role": "assistant", "content": content}
    return {"type": "assistant", "uuid": uuid, "parentUuid": parent, "message": message}


def outcome(uuid: str, parent: str, tool: str) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": tool, "content": tool}
    message = {"role": "user", "content": [block]}
    return {"type": "user", "uuid": uuid, "parentUuid": parent, "message": message}


def test_tools_that_ran_in_parallel_are_one_branch(store: Store) -> None:
    """New CLIs hang each result below its own call, and go on below one of them."""
    store.write(
        user("1", None, "read both", store.work),
        call("2", "1", "a"),
        call("3", "2", "b"),
        outcome("4", "2", "a"),
        outcome("5", "3", "b"),
        assistant("6", "5", "Done."),
    )
    transcript = store.read()
    assert [entry.uuid for entry in transcript.leaves()] == ["6"]
    assert [entry.uuid for entry in transcript.branch()] == ["1", "2", "3", "4", "5", "6"]
    assert len(transcript.branches()) == 1
    assert [entry.uuid for entry in transcript.branch("2")] == ["1", "2"]


def test_a_session_that_ended_in_parallel_tools_has_one_leaf(store: Store) -> None:
    store.write(
        user("1", None, "read both", store.work),
        call("2", "1", "a"),
        call("3", "2", "b"),
        outcome("4", "2", "a"),
        outcome("5", "3", "b"),
    )
    assert [[entry.uuid for entry in branch] for branch in store.read().branches()] == [
        list("12345")
    ]


def test_slash_commands_are_no_first_prompt(store: Store) -> None:
    command = "<command-name>/clear</command-name>"
    store.write(user("1", None, command, store.work), user("2", "1", "hi", store.work))
    assert store.list()[0].first_prompt == "hi"


def test_a_deep_folder_is_found_although_its_name_was_cut(tmp_path: Path) -> None:
    work = tmp_path / ("a" * 120) / ("b" * 120)
    work.mkdir(parents=True)
    name = re.sub(r"[^A-Za-z0-9]", "-", str(work))[:200]
    folder = tmp_path / "claude" / "projects" / f"{name}-1x2y3z"
    folder.mkdir(parents=True)
    (folder / f"{ID}.jsonl").write_text(json.dumps(user("1", None, "deep", work)))
    (stored,) = list_sessions(work, tmp_path / "claude")
    assert stored.first_prompt == "deep"
    assert len(read_transcript(ID, work, tmp_path / "claude").entries) == 1


def test_a_session_that_begins_with_a_huge_prompt_is_listed(store: Store) -> None:
    store.write(user("1", None, "word " * 100_000, store.work))
    assert store.list()[0].first_prompt.startswith("word word")
    assert len(store.list()[0].first_prompt) == 500
