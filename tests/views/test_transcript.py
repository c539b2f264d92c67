"""The transcript: each sort of entry, joined where it belongs, from real wires and hostile ones."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import Raw

from bridle.protocol.capabilities import TESTED_VERSIONS
from bridle.views import Transcript, TranscriptEntry, TranscriptState, stream, transcript
from bridle.views.entries import (
    Approval,
    CommandOutput,
    Error,
    Image,
    Large,
    Plan,
    Prompt,
    Status,
    Stderr,
    Strange,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    TurnEnd,
)
from bridle.views.excerpts import MAX_TEXT
from bridle.views.step import MAX_OPEN_BYTES, MAX_OPEN_ENTRIES

from .helpers import (
    NEW,
    OLD,
    SCENARIOS,
    Told,
    assistant,
    kinds,
    of_kind,
    recorded,
    shown,
    the_only,
)

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAQAAAAECAIAAAAmkwkp"


@pytest.mark.parametrize("version", TESTED_VERSIONS)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_of_a_real_wire_nothing_is_strange_and_nothing_stays_open(
    version: str, scenario: str
) -> None:
    transcript = Transcript()
    for entry in recorded(version, scenario):
        transcript.add(entry)
    entries = transcript.page(after=0, limit=1_000)
    assert [entry.position for entry in entries] == list(range(1, len(entries) + 1))
    assert not of_kind(entries, Strange)
    assert not of_kind(entries, ToolResult)
    assert all(call.end for call in of_kind(entries, ToolCall))
    assert transcript.state.open == {}
    assert transcript.state.weight == 0


@pytest.mark.parametrize("version", TESTED_VERSIONS)
def test_a_plain_turn_is_a_prompt_the_words_and_the_end(version: str) -> None:
    entries = shown(recorded(version, "plain_turn"))
    spoken = [kind for kind in kinds(entries) if kind != "status"]
    assert spoken[:3] == ["prompt", "text", "turn_end"]
    end = of_kind(entries, TurnEnd)[0]
    assert (end.outcome, end.cost_usd > 0, end.seconds > 0) == ("done", True, True)


@pytest.mark.parametrize("version", TESTED_VERSIONS)
def test_a_result_joins_its_call_with_the_exit_code(version: str) -> None:
    calls = of_kind(shown(recorded(version, "exit_code")), ToolCall)
    assert [(call.end.outcome, call.end.exit_code) for call in calls] == [("ok", 0), ("error", 3)]
    assert all(call.changed == call.end.seq > call.seq for call in calls)


@pytest.mark.parametrize("version", TESTED_VERSIONS)
def test_what_a_subagent_does_is_linked_to_the_call_that_made_it(version: str) -> None:
    entries = shown(recorded(version, "subagent"))
    task = next(call for call in of_kind(entries, ToolCall) if call.name in ("Task", "Agent"))
    below = [entry for entry in entries if entry.parent == task.id]
    (bash,) = of_kind(below, ToolCall)
    assert (bash.name, bash.end.outcome) == ("Bash", "ok")


@pytest.mark.parametrize("version", TESTED_VERSIONS)
def test_an_image_is_shown_by_its_type_and_size(version: str) -> None:
    (call,) = of_kind(shown(recorded(version, "image_from_tool")), ToolCall)
    (picture,) = call.end.pictures
    assert (picture.media_type, picture.size) == ("image/png", 73)


@pytest.mark.parametrize("version", [OLD, NEW])
def test_the_output_of_a_slash_command_is_shown_however_it_is_written(version: str) -> None:
    entries = shown(recorded(version, "slash_command_output"))
    (output,) = of_kind(entries, CommandOutput)
    assert "<local-command" not in output.text.text
    assert output.text.text.startswith("Total co")
    assert of_kind(entries, TurnEnd)[-1].command == ("" if version == OLD else "cost")


@pytest.mark.parametrize("version", TESTED_VERSIONS)
def test_a_plan_is_shown_with_its_text(version: str) -> None:
    (plan,) = of_kind(shown(recorded(version, "plan_approval")), Plan)
    assert plan.plan.text == "1. write planned.txt\n2. stop"
    assert plan.end.outcome == "ok"


@pytest.mark.parametrize("version", TESTED_VERSIONS)
def test_an_interrupted_turn_is_told_apart_from_a_failed_one(version: str) -> None:
    ends = of_kind(shown(recorded(version, "interrupt_stream")), TurnEnd)
    assert ends[0].outcome == "interrupted"


def test_a_prompt_is_one_entry_from_queued_to_written() -> None:
    told, transcript = Told(), Transcript()
    content = [
        {"type": "text", "text": "look"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
    ]
    line = {"type": "user", "message": {"role": "user", "content": content}}
    raw = Raw(msgspec.json.encode(line))
    queued = told.event(stream.PROMPTED, stream.Prompted(uuid="u", line=raw, at=1.0, by="ann"))
    (prompt,) = transcript.add(queued).added
    assert isinstance(prompt, Prompt)
    assert (prompt.status, prompt.text.text, prompt.by) == ("queued", "look", "ann")
    assert [picture.media_type for picture in prompt.pictures] == ["image/png"]
    changes = transcript.add(told.wrote(line, "u"))
    assert changes.added == []
    assert (the_only(changes).status, the_only(changes).launch) == ("written", "one")
    echo = told.said({**line, "isReplay": True, "uuid": "u"})
    assert not transcript.add(echo)


def test_parallel_calls_take_their_own_results_in_any_order() -> None:
    told = Told()
    told.calls("a", "Read", file_path="/a")
    told.calls("b", "Read", file_path="/b")
    told.gives("b", "B")
    told.gives("a", [{"type": "text", "text": "A"}, {"type": "text", "text": "more"}])
    calls = of_kind(shown(told.entries), ToolCall)
    assert [(call.id, call.end.output.text) for call in calls] == [("a", "A\nmore"), ("b", "B")]


def test_a_long_result_is_cut_and_says_how_long_it_was() -> None:
    told = Told()
    told.calls("a", "Bash", command="yes")
    told.gives("a", "y" * (MAX_TEXT + 5))
    (call,) = of_kind(shown(told.entries), ToolCall)
    output = call.end.output
    assert (output.is_cut, output.size, len(output.text)) == (True, MAX_TEXT + 5, MAX_TEXT)


def test_a_result_without_a_call_is_an_entry_of_its_own() -> None:
    told = Told()
    told.gives("nobody", "what?")
    told.gives("sub", "!", parent_tool_use_id="task")
    entry, below = shown(told.entries)
    assert isinstance(entry, ToolResult)
    assert isinstance(below, ToolResult)
    assert (entry.id, entry.parent, entry.end.output.text) == ("nobody", None, "what?")
    assert (below.id, below.parent, below.end.output.text) == ("sub", "task", "!")


def test_an_approval_is_one_entry_from_asked_to_its_outcome() -> None:
    told, transcript = Told(), Transcript()
    first = the_only(transcript.add(told.asks("ap", "t", input={"command": "ls"}, reason="why")))
    assert isinstance(first, Approval)
    assert (first.decision.status, first.reason) == ("pending", "why")
    decided = the_only(transcript.add(told.decides("ap")))
    assert (decided.decision.status, decided.decision.by) == ("allowed", "ann")
    delivered = told.event("approval.delivered", {"id": "ap", "at": 5.0})
    assert the_only(transcript.add(delivered)).decision.delivered == 5.0
    ran = told.event("approval.outcome", {"id": "ap", "outcome": {"how": "ran", "at": 6.0}})
    last = the_only(transcript.add(ran))
    assert (last.position, last.seq, last.decision.outcome) == (1, 1, "ran")
    assert transcript.state.open == {}
    assert not transcript.add(told.decides("ap", "reject"))


@pytest.mark.parametrize(
    ("end", "status", "outcome"),
    [("reject", "denied", "denied"), ("withdrawn", "cancelled", "cancelled")],
)
def test_a_call_that_was_refused_did_not_fail(end: str, status: str, outcome: str) -> None:
    told = Told()
    told.calls("t", "Bash", command="rm x")
    told.asks("ap", "t")
    if end == "reject":
        told.decides("ap", "reject", message="no")
    else:
        told.cancels("ap", end)
    told.gives("t", "no", is_error=True)
    entries = shown(told.entries)
    assert of_kind(entries, Approval)[0].decision.status == status
    assert of_kind(entries, ToolCall)[0].end.outcome == outcome


def test_a_call_that_a_rule_denied_did_not_fail() -> None:
    told = Told()
    told.calls("t", "Bash", command="rm x")
    verdict = {"type": "deny", "rule": "Bash(rm:*)", "because": "no"}
    told.event("tool.judged", {"launch": "one", "tool": "Bash", "input": {}, "tool_use_id": "t",
                               "agent_id": None, "verdict": verdict})  # fmt: skip
    told.gives("t", "no", is_error=True)
    (call,) = of_kind(shown(told.entries), ToolCall)
    assert (call.end.outcome, call.end.exit_code) == ("denied", None)


def test_an_expired_approval_says_so() -> None:
    told = Told()
    told.asks("ap", "t")
    told.event("approval.expired",
               {"id": "ap", "ending": {"type": "expired", "after": 60, "at": 1}})  # fmt: skip
    (entry,) = shown(told.entries)
    assert isinstance(entry, Approval)
    assert entry.decision.status == "timed_out"
    assert entry.decision.words == "nobody decided in 60 s"


@pytest.mark.parametrize("is_asked_first", [False, True])
def test_a_plan_and_its_approval_are_one_entry(is_asked_first: bool) -> None:
    told = Told()
    if is_asked_first:
        told.asks("ap", "t", "plan", tool="ExitPlanMode", input={"plan": "do it"})
        told.calls("t", "ExitPlanMode")
    else:
        told.calls("t", "ExitPlanMode", plan="do it")
        told.asks("ap", "t", "plan", tool="ExitPlanMode", input={})
    told.decides("ap", "approve_plan", mode="acceptEdits")
    told.event("approval.delivered", {"id": "ap", "at": 5.0})
    told.gives("t", "approved")
    told.event("approval.outcome", {"id": "ap", "outcome": {"how": "ran", "at": 6.0}})
    transcript = Transcript()
    for entry in told.entries:
        transcript.add(entry)
    (plan,) = transcript.page()
    assert isinstance(plan, Plan)
    assert plan.decision
    assert plan.end
    assert plan.plan.text == "do it"
    assert (plan.decision.status, plan.decision.words) == ("allowed", "acceptEdits")
    assert (plan.decision.outcome, plan.end.outcome) == ("ran", "ok")
    assert (transcript.state.open, transcript.state.plans) == ({}, {})


def test_a_plan_that_was_refused_did_not_fail() -> None:
    told = Told()
    told.calls("t", "ExitPlanMode", plan="do it")
    told.asks("ap", "t", "plan", input={})
    told.decides("ap", "reject", message="not so")
    told.gives("t", "no", is_error=True)
    (plan,) = shown(told.entries)
    assert isinstance(plan, Plan)
    assert plan.decision
    assert plan.end
    assert (plan.decision.status, plan.decision.words) == ("denied", "not so")
    assert (plan.decision.by, plan.end.outcome) == ("ann", "denied")


def test_a_changed_plan_is_the_one_that_is_shown() -> None:
    told = Told()
    told.calls("t", "ExitPlanMode", plan="do it")
    told.asks("ap", "t", "plan", input={})
    told.decides("ap", "approve_plan", mode="default", plan="do it well")
    (plan,) = shown(told.entries)
    assert isinstance(plan, Plan)
    assert plan.plan.text == "do it well"


def test_thoughts_and_single_images_are_entries() -> None:
    told = Told()
    source = {"type": "url", "url": "https://x/y.png"}
    told.said(
        assistant(
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "redacted_thinking", "data": "…"},
            {"type": "image", "source": source},
        )
    )
    thought, hidden, image = shown(told.entries)
    assert isinstance(thought, Thinking)
    assert isinstance(hidden, Thinking)
    assert isinstance(image, Image)
    assert (thought.text.text, hidden.is_redacted) == ("hm", True)
    assert image.picture.url == "https://x/y.png"


def test_errors_of_the_service_are_errors_and_told_once() -> None:
    told = Told()
    told.text("API Error: 400", error="unknown")
    told.result(is_error=True, result="API Error: 400")
    told.result(subtype="error_max_turns", is_error=True)
    entries = shown(told.entries)
    assert kinds(entries) == ["error", "turn_end", "error", "turn_end"]
    assert [error.source for error in of_kind(entries, Error)] == ["api", "turn"]


def test_a_launch_is_one_entry_until_it_is_ready_and_its_end_another() -> None:
    told = Told()
    told.begins("one", resume="c")
    told.calls("t", "Bash", command="sleep 9")
    told.ends("killed", code=None)
    entries = shown(told.entries)
    assert kinds(entries) == ["status", "tool_call", "error"]
    assert of_kind(entries, Status)[0].value == "ready"
    assert of_kind(entries, ToolCall)[0].end.outcome == "cancelled"
    assert of_kind(entries, Error)[0].source == "launch"


def test_the_turns_end_leaves_a_subagent_in_the_background_running() -> None:
    told = Told()
    told.calls("main", "Bash", command="x")
    told.calls("sub", "Bash", parent="task", command="y")
    told.result()
    main, sub = of_kind(shown(told.entries), ToolCall)
    assert (main.end.outcome, sub.end) == ("cancelled", None)


def test_the_mode_and_the_model_are_told_when_they_change() -> None:
    told = Told()
    init: dict[str, Any] = {"type": "system", "subtype": "init", "cwd": "/", "model": "opus"}
    told.said({**init, "permissionMode": "default"})
    told.said({**init, "permissionMode": "default"})
    told.said({"type": "system", "subtype": "status", "status": None, "permissionMode": "plan"})
    told.said({**init, "permissionMode": "plan"})
    changes = [(status.topic, status.value) for status in of_kind(shown(told.entries), Status)]
    assert changes == [("mode", "default"), ("model", "opus"), ("mode", "plan")]


def test_what_the_cli_tells_of_itself_is_told() -> None:
    told = Told()
    for fields in (
        {"subtype": "status", "status": "compacting"},
        {"subtype": "status", "status": None, "compact_error": "too long"},
        {"subtype": "compact_boundary",
         "compact_metadata": {"trigger": "auto", "pre_tokens": 9, "post_tokens": 2}},
        {"subtype": "api_retry", "attempt": 2, "max_retries": 5, "retry_delay_ms": 1,
         "error": "overloaded", "error_status": 529},
        {"subtype": "hook_response", "hook_id": "h", "hook_name": "lint", "hook_event": "Stop",
         "outcome": "error"},
        {"subtype": "task_started", "task_id": "t", "description": "look around"},
        {"subtype": "task_notification", "task_id": "t", "status": "failed", "summary": "no"},
        {"subtype": "notification", "key": "k", "text": "be quick"},
        {"subtype": "informational", "content": "so it is", "level": "warning"},
        {"subtype": "session_title_changed", "title": "A title"},
        {"subtype": "model_refusal_fallback", "original_model": "a", "fallback_model": "b",
         "content": "why"},
        {"subtype": "model_refusal_no_fallback", "original_model": "a", "content": "not this"},
        {"subtype": "mirror_error", "error": "gone"},
        {"subtype": "plugin_install", "status": "done", "name": "plug"},
        {"subtype": "session_writes_lost", "error_code": "ENOSPC"},
        {"subtype": "worker_shutting_down", "reason": "old"},
    ):  # fmt: skip
        told.said({"type": "system", **fields})
    told.said({"type": "rate_limit_event", "rate_limit_info": {"status": "allowed"}})
    limits = {"status": "rejected", "rateLimitType": "five_hour"}
    told.said({"type": "rate_limit_event", "rate_limit_info": limits})
    told.said({"type": "tool_use_summary", "summary": "read two files"})
    told.said({"type": "conversation_reset", "new_conversation_id": "n", "trigger": "clear"})
    entries = shown(told.entries)
    assert [(one.topic, one.value, one.words) for one in of_kind(entries, Status)] == [
        ("compaction", "started", ""),
        ("compaction", "failed", "too long"),
        ("compaction", "done", "auto, 9 tokens before"),
        ("retry", "529", "attempt 2 of 5: overloaded"),
        ("hook", "error", "lint"),
        ("task", "started", "look around"),
        ("task", "failed", "no"),
        ("notice", "notification", "be quick"),
        ("notice", "warning", "so it is"),
        ("notice", "new title", "A title"),
        ("model", "b", "why"),
        ("model", "refused", "not this"),
        ("notice", "mirror failed", "gone"),
        ("notice", "done", "plug"),
        ("notice", "writes lost", "ENOSPC"),
        ("notice", "shutting down", "old"),
        ("limit", "rejected", "five_hour"),
        ("notice", "in short", "read two files"),
        ("conversation", "new", "clear"),
    ]


def test_a_login_is_an_error_only_when_it_fails() -> None:
    told = Told()
    told.said({"type": "auth_status", "isAuthenticating": True, "output": ["wait"]})
    told.said({"type": "auth_status", "isAuthenticating": False, "error": "expired"})
    (error,) = shown(told.entries)
    assert isinstance(error, Error)
    assert (error.source, error.words.text) == ("api", "expired")


def test_a_call_that_the_cli_denied_by_itself_did_not_fail() -> None:
    told = Told()
    told.calls("t", "Bash", command="rm x")
    told.calls("u", "Bash", command="rm y")
    told.said({"type": "system", "subtype": "permission_denied", "tool_name": "Bash",
               "tool_use_id": "t", "message": "no"})  # fmt: skip
    told.gives("t", "no", is_error=True)
    told.gives("u", "no", is_error=True)
    calls = of_kind(shown(told.entries), ToolCall)
    assert [call.end.outcome for call in calls] == ["denied", "error"]


def test_what_happens_to_the_session_is_told() -> None:
    told = Told()
    told.event(stream.STATE, stream.StateChanged(was="idle", now="running", at=1, why="asked"))
    told.event(stream.PAUSED, stream.Paused(cause="budget", at=1))
    told.event(stream.UNPAUSED, stream.Unpaused(cause="budget", at=1))
    told.event(stream.LIMITED, stream.Limited(at=1, until=5, words="until five"))
    told.event(stream.LIMITED, stream.Limited(at=1, needs_login=True))
    told.event(stream.UNLIMITED, stream.Unlimited(at=1))
    told.event(stream.BUDGET, stream.BudgetSet(limits=stream.Limits(cost_usd=2.5), at=1))
    told.event(stream.STOP_ASKED, stream.StopAsked(at=1, by="ann"))
    told.event(stream.HANDED_OVER, stream.HandedOver(lineage=(), at=1))
    told.event(stream.CHILD_CREATED, stream.ChildCreated(session="c", name="ann", at=1))
    told.event(stream.STDERR, stream.Stderr(launch="one", end=3, text="oh\n"))
    told.event("rule.added", {})
    entries = shown(told.entries)
    told_of = [(one.topic, one.value, one.words) for one in of_kind(entries, Status)]
    assert told_of[:8] == [
        ("state", "running", "asked"),
        ("pause", "budget", ""),
        ("pause", "over", "budget"),
        ("limit", "limited", "until five"),
        ("limit", "needs login", ""),
        ("limit", "over", ""),
        ("budget", "set", "cost_usd 2.5"),
        ("stop", "asked", "ann"),
    ]
    assert [topic for topic, _, _ in told_of[8:]] == ["parent", "child", "policy"]
    assert [out.text.text for out in of_kind(entries, Stderr)] == ["oh\n"]


def test_what_is_not_known_is_shown_and_never_fatal() -> None:
    told = Told()
    told.said({"type": "sing", "song": "la"})
    told.said({"type": "system", "subtype": "hum"})
    told.said(assistant({"type": "dance", "step": 1}, {"type": "text", "text": "ok"}))
    told.said(b"[1]")
    told.event("future.kind", {"a": 1})
    entries = shown(told.entries)
    assert kinds(entries) == ["strange", "strange", "strange", "text", "strange", "strange"]
    assert [strange.type for strange in of_kind(entries, Strange)] == [
        *("sing", "system/hum", "dance", "", "future.kind"),
    ]


def test_a_tool_of_the_service_takes_its_result_whatever_that_is_called() -> None:
    told = Told()
    call = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}}
    told.said(assistant(call))
    told.said(assistant({"type": "web_search_tool_result", "tool_use_id": "s", "content": []}))
    (entry,) = shown(told.entries)
    assert isinstance(entry, ToolCall)
    assert entry.end
    assert entry.end.outcome == "ok"


def test_lines_that_could_not_be_read_are_errors_with_what_they_were() -> None:
    told = Told()
    for kind in (stream.MALFORMED, stream.OVERSIZED, stream.UNREADABLE):
        told.event(kind, stream.Line(launch="one", end=1, reason="why", bytes=b"{oops"))
    entries = of_kind(shown(told.entries), Error)
    assert entries[0].words.text == "malformed line: why\n{oops"
    assert [error.source for error in entries] == ["line", "line", "line"]


def test_a_body_that_is_cut_says_so_and_ends_the_call_whose_result_it_is() -> None:
    told = Told()
    told.calls("t", "Read", file_path="/big.png")
    block = {"tool_use_id": "t", "type": "tool_result", "content": "x" * 9_000}
    line = {"type": "user", "message": {"role": "user", "content": [block]}}
    body = stream.Line(launch="one", end=1, type="user", line=Raw(msgspec.json.encode(line)))
    event = told.event(stream.SAID, msgspec.json.encode(body)[:4_096], is_cut=True)
    call, large = shown(told.entries)
    assert isinstance(call, ToolCall)
    assert isinstance(large, Large)
    assert call.end
    assert (call.end.outcome, call.end.seq) == ("unknown", event.seq)
    assert (large.seq, large.event, large.type, large.launch) == (2, stream.SAID, "user", "one")


def test_an_event_that_is_in_it_already_changes_nothing() -> None:
    told, transcript = Told(), Transcript()
    entry = told.text("once")
    assert len(transcript.add(entry).added) == 1
    assert not transcript.add(entry)
    assert len(transcript) == 1


def test_what_stays_open_is_bounded() -> None:
    told, state = Told(), TranscriptState()
    for number in range(MAX_OPEN_ENTRIES * 3):
        command = "x" * 5_000 if number % 2 else "y"
        transcript.fold(state, told.calls(f"t{number}", "Bash", command=command))
        transcript.fold(state, told.asks(f"a{number}", f"t{number}"))
        transcript.fold(state, told.decides(f"a{number}", "reject"))
    assert len(state.open) <= MAX_OPEN_ENTRIES
    assert len(msgspec.json.encode(state)) < 1.5 * MAX_OPEN_BYTES
    assert state.count == MAX_OPEN_ENTRIES * 6


def test_pages_come_from_either_end() -> None:
    told, transcript = Told(), Transcript()
    for number in range(1, 11):
        transcript.add(told.text(str(number)))

    def texts(**which: int) -> list[str]:
        page = transcript.page(**which)
        return [entry.text.text for entry in page if isinstance(entry, Text)]

    assert texts(limit=3) == ["8", "9", "10"]
    assert texts(before=8, limit=3) == ["5", "6", "7"]
    assert texts(after=0, limit=3) == ["1", "2", "3"]
    assert texts(after=8) == ["9", "10"]
    assert texts(after=2, before=5) == ["3", "4"]
    assert texts(after=10) == texts(before=1) == texts(after=5, before=3) == texts(limit=0) == []


def test_every_sort_of_entry_is_encoded_and_decoded() -> None:
    decoder: msgspec.json.Decoder[TranscriptEntry] = msgspec.json.Decoder(TranscriptEntry)
    for version in TESTED_VERSIONS:
        for scenario in SCENARIOS:
            for entry in shown(recorded(version, scenario)):
                assert decoder.decode(msgspec.json.encode(entry)) == entry
