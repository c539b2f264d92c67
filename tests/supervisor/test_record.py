"""What is known of a session is the fold of its stream, whatever is in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from bridle.approvals import events as approvals
from bridle.supervisor.fold import KEPT_PROMPTS, fold
from bridle.supervisor.record import SessionRecord, blank, changes, restored, snapshot
from bridle.views import stream
from bridle.views.stream import BODIES, Limits, StateChanged
from tests.levels import tries

from .streams import Tape
from .walks import next_steps

WIRES = sorted((Path(__file__).resolve().parents[1] / "wires").glob("2.*/*.ndjson"))


def tokens(read: int, written: int) -> dict[str, Any]:
    return {"m": {"inputTokens": read, "outputTokens": written, "cacheReadInputTokens": 1000}}


def ready() -> Tape:
    tape = Tape()
    tape.run()
    return tape


# --- the session itself


def test_a_new_session_is_as_it_was_created() -> None:
    limits = Limits(turns=3)
    record = Tape(
        "s1", labels={"a": "b"}, lineage=("r", "p"), parent="p", limits=limits, orphans="hand over",
        spec={"model": "m"}, env={"KEY": "given"}, policy="ask", by="ann", forked_from="s0",
    ).record  # fmt: skip
    assert (record.id, record.name, record.folder, record.by) == ("s1", "s1", "/f", "ann")
    assert (record.parent, record.lineage, record.orphans) == ("p", ("r", "p"), "hand over")
    assert (record.labels, record.spec, record.env) == (
        {"a": "b"},
        {"model": "m"},
        {"KEY": "given"},
    )
    assert (record.limits, record.forked_from, record.policy) == (limits, "s0", "ask")
    assert (record.state, record.outcome, record.created_at) == ("stopped", "none", 1000)
    assert record.is_created
    assert not blank("s2").is_created


def test_budgets_and_handing_over_change_what_it_is() -> None:
    tape = Tape(lineage=("r", "p"), parent="p")
    assert tape.tell(stream.BUDGET, limits=Limits(turns=9)).limits == Limits(turns=9)
    assert tape.tell(stream.HANDED_OVER, lineage=("r",)).parent == "r"
    tape.tell(stream.QUEUED, resume="c9", fork=True)
    assert (tape.record.resume, tape.record.is_fork) == ("c9", True)
    record = tape.tell(stream.HANDED_OVER, lineage=())
    assert (record.parent, record.lineage) == (None, ())


def test_prompts_wait_in_order_until_they_are_written() -> None:
    tape = Tape()
    for uuid in ("a", "b", "c"):
        tape.prompt(uuid, text=uuid)
    tape.run()
    record = tape.write("b")
    assert [(p.uuid, bytes(p.line)) for p in record.waiting] == [("a", b'"a"'), ("c", b'"c"')]
    assert record.unanswered == ["b"]
    tape.end(code=1)
    assert [p.uuid for p in tape.run("l2").waiting] == ["a", "c"]
    assert tape.record.unanswered == []


def test_a_long_prompt_waits_in_its_event() -> None:
    tape = Tape()
    tape.prompt("a", text="x" * KEPT_PROMPTS)
    tape.put(stream.PROMPTED, b'{"uuid":"b","line":{"type":"us', is_cut=True)
    record = tape.prompt("c")
    assert [(p.uuid, p.seq, bytes(p.line)) for p in record.waiting] == [
        ("a", 2, b""), ("b", 3, b""), ("c", 4, b'"hi"'),
    ]  # fmt: skip
    assert len(snapshot(record)) < 1000
    assert restored(snapshot(record)) == record


def test_limits_of_the_service_have_an_end_or_need_a_login() -> None:
    tape = ready()
    record = tape.tell(stream.LIMITED, until=5000.0)
    assert (record.state, record.until) == ("rate limited", 5000)
    record = tape.tell(stream.LIMITED, needs_login=True)
    assert (record.state, record.until) == ("needs login", None)
    assert tape.tell(stream.UNLIMITED).state == "idle"


# --- launches


def test_a_launch_is_known_from_intent_to_end() -> None:
    tape = Tape()
    tape.tell(stream.QUEUED)
    tape.tell(stream.INTENDED, resume="c0", fork=True)
    tape.tell(stream.STARTED, pid=7, born=1.5, boot="b", version="2.1.12")
    tape.tell(stream.READY)
    tape.tell(stream.STDERR, end=9, text="oh")
    record = tape.end(code=3, stderr="oh", words="exit 3", survivors=(8,))
    launch = record.launch
    assert launch
    assert (launch.id, launch.resume, launch.fork, launch.pid) == ("l1", "c0", True, 7)
    assert (launch.born, launch.boot, launch.version) == (1.5, "b", "2.1.12")
    assert launch.stderr_end == 9
    assert (launch.how, launch.code, launch.stderr, launch.survivors) == ("exited", 3, "oh", (8,))
    assert (record.state, record.launches) == ("failed", 1)


def test_what_belongs_to_an_earlier_launch_changes_nothing() -> None:
    tape = ready()
    tape.end(code=0)
    tape.run("l2")
    before = snapshot(tape.record)
    tape.launch = "l1"
    tape.say("assistant", {"session_id": "other"})
    tape.result(total_cost_usd=5.0)
    tape.begin()
    tape.write("x")
    tape.end(code=1)
    tape.tell(stream.READY)
    tape.tell(stream.STARTED, pid=1, born=1.0, boot="x")
    after = tape.record
    kept = restored(before)
    kept.seq, kept.last_at = after.seq, after.last_at
    assert kept == after


def test_the_first_end_of_a_launch_is_its_end() -> None:
    tape = ready()
    tape.end("vanished")
    assert tape.end(code=0).state == "lost"


def test_asking_to_run_again_while_it_stops_waits_for_the_end() -> None:
    tape = ready()
    tape.tell(stream.STOP_ASKED)
    assert tape.tell(stream.QUEUED).state == "stopping"
    assert tape.end("stopped", code=143).state == "queued"
    assert tape.tell(stream.STOP_ASKED).state == "stopped"


def test_offsets_are_those_of_the_present_launch() -> None:
    tape = ready()
    for kind in (stream.SAID, stream.ASKED, stream.MALFORMED, stream.OVERSIZED, stream.IGNORED):
        tape.tell(kind, end=(tape.record.launch.output_end if tape.record.launch else 0) + 10)
    assert tape.record.launch
    assert tape.record.launch.output_end == 50
    tape.end(code=0)
    launch = tape.run("l2").launch
    assert launch
    assert (launch.output_end, launch.stderr_end) == (0, 0)


def test_a_cut_line_still_tells_its_launch_its_end_and_its_type() -> None:
    tape = ready()
    tape.write("u1")
    record = tape.result(result="x" * 5000, total_cost_usd=0.5)
    whole = tape.entries[-1].body
    assert record.launch
    end = record.launch.output_end
    for cut in range(len(whole) - 5000, len(whole), 7):
        again = ready()
        again.write("u1")
        again.put(stream.SAID, whole[:cut], is_cut=True)
        assert again.record.launch
        assert (again.record.launch.output_end, again.record.state) == (end, "idle")
        assert (again.record.outcome, again.record.turns) == ("complete", 1)


def test_what_is_read_after_the_end_counts_but_starts_nothing() -> None:
    tape = ready()
    tape.write("u1")
    tape.end(code=1)
    tape.begin()
    record = tape.result(total_cost_usd=0.25)
    assert (record.state, record.outcome, record.cost_usd) == ("failed", "lost", 0.25)


# --- turns


def test_an_old_cli_answers_one_prompt_after_the_other() -> None:
    tape = ready()
    tape.write("a")
    tape.begin()
    tape.write("b")
    assert tape.result().unanswered == ["b"]
    assert tape.record.state == "running"
    tape.begin()
    assert (tape.result().state, tape.record.turns) == ("idle", 2)


def test_an_old_cli_answers_together_what_it_repeats_in_a_turn() -> None:
    tape = ready()
    tape.write("a")
    tape.begin()
    tape.write("b")
    tape.say("user", {"uuid": "b", "isReplay": True, "session_id": "c1"})
    assert (tape.result().state, tape.record.turns) == ("idle", 1)


def test_a_new_cli_names_the_prompts_that_a_result_answers() -> None:
    tape = ready()
    for uuid in ("a", "b", "c"):
        tape.write(uuid)
    tape.begin(capabilities=["msg_lifecycle_v1"], user_message_uuids=["a"])
    assert tape.result(user_message_uuids=["a"]).unanswered == ["b", "c"]
    tape.begin(capabilities=["msg_lifecycle_v1"])
    record = tape.result(origin={"kind": "task-notification"})
    assert (record.unanswered, record.state) == (["b", "c"], "running")
    assert tape.result(user_message_uuids=["b", "c"], user_message_uuid="c").state == "idle"


def test_a_prompt_that_was_taken_back_is_not_waited_for() -> None:
    tape = ready()
    tape.write("a")
    record = tape.say("command_lifecycle", {"command_uuid": "a", "state": "cancelled"})
    assert (record.state, record.outcome) == ("idle", "cancelled")


@pytest.mark.parametrize("told", ["started", "repeated"])
def test_prompts_that_are_taken_up_before_a_turn_begins_are_of_it(told: str) -> None:
    """Their result names the last of them alone, or none."""
    tape = ready()
    for uuid in "abcd":
        tape.write(uuid)
    for uuid in "abc":
        if told == "started":
            tape.say("command_lifecycle", {"command_uuid": uuid, "state": "started"})
        else:
            tape.say("user", {"uuid": uuid, "isReplay": True})
    tape.begin(capabilities=["msg_lifecycle_v1"] if told == "started" else [])
    record = tape.result(user_message_uuid="c")
    assert (record.unanswered, record.turns) == (["d"], 1)
    record = tape.say("command_lifecycle", {"command_uuid": "d", "state": "completed"})
    assert (record.unanswered, record.outcome, record.state) == ([], "complete", "idle")


def test_a_prompt_that_has_joined_a_turn_is_answered_by_it_though_it_is_cancelled() -> None:
    tape = ready()
    for uuid in ("a", "b", "c"):
        tape.write(uuid)
    tape.begin(capabilities=["msg_lifecycle_v1"], user_message_uuids=["a"])
    tape.say("command_lifecycle", {"command_uuid": "b", "state": "started"})
    tape.say("command_lifecycle", {"command_uuid": "b", "state": "cancelled"})
    record = tape.say("command_lifecycle", {"command_uuid": "c", "state": "cancelled"})
    assert (record.unanswered, record.joined) == (["a", "b"], ["a", "b"])
    assert (tape.result().unanswered, tape.record.state) == ([], "idle")


def test_a_turn_that_nobody_prompted_runs_too() -> None:
    tape = ready()
    assert tape.begin().state == "running"
    assert tape.result(origin={"kind": "task-notification"}).state == "idle"


def test_the_id_of_the_conversation_is_taken_from_messages_that_are_not_of_the_system() -> None:
    tape = ready()
    tape.write("a")
    assert tape.begin(session_id="old").claude_session_id is None
    tape.say("assistant", {"session_id": "c1", "message": {}})
    assert tape.result().claude_session_id == "c1"
    tape.say("conversation_reset", {"session_id": "c1", "new_conversation_id": "n"})
    assert tape.record.claude_session_id == "c1"
    assert tape.say("user", {"session_id": "c2"}).claude_session_id == "c2"


# --- what it used


def test_costs_are_those_of_the_latest_result_of_each_launch() -> None:
    tape = ready()
    tape.result(total_cost_usd=0.1, modelUsage=tokens(10, 20))
    tape.result(total_cost_usd=0.3, modelUsage=tokens(30, 40))
    tape.end(code=0)
    tape.run("l2")
    record = tape.result(total_cost_usd=0.2, modelUsage=tokens(5, 5))
    assert (record.cost_usd, record.usage.counted_tokens, record.turns) == (0.5, 80, 3)
    assert record.usage.tokens.cache_read == 2000


def test_a_cli_that_counts_from_nothing_after_a_reset_is_not_believed_to_have_used_less() -> None:
    tape = ready()
    tape.result(total_cost_usd=0.1, modelUsage=tokens(10, 20))
    tape.result(total_cost_usd=0, usage={"input_tokens": 0}, modelUsage={})
    record = tape.result(total_cost_usd=0.1, modelUsage=tokens(10, 20))
    assert (record.cost_usd, record.usage.counted_tokens) == (0.2, 60)


def test_what_a_resumed_cli_brings_along_is_not_counted_twice() -> None:
    tape = ready()
    first = tokens(10, 20) | {}
    first["m"] |= {"costUSD": 0.1}
    tape.result(total_cost_usd=0.1, modelUsage=first, model_usage_since_last_result=first)
    tape.end(code=0)
    tape.run("l2")
    both = {"m": {"inputTokens": 15, "outputTokens": 25, "costUSD": 0.15}}
    since = {"m": {"inputTokens": 5, "outputTokens": 5, "costUSD": 0.05}}
    record = tape.result(total_cost_usd=0.15, modelUsage=both, model_usage_since_last_result=since)
    assert (record.cost_usd, record.usage.counted_tokens) == (0.15, 40)


def test_tokens_of_turns_of_an_earlier_process_are_counted_once() -> None:
    tape = ready()
    tape.result(usage={"input_tokens": 3, "output_tokens": 4})
    tape.end(code=0)
    tape.run("l2")
    tape.result(usage={"input_tokens": 1, "output_tokens": 2})
    record = tape.result(usage={"input_tokens": 2, "output_tokens": 3})
    assert record.usage.counted_tokens == 7 + 3 + 5


def test_tokens_of_turns_are_added_up_where_models_are_not_told() -> None:
    tape = ready()
    tape.result(usage={"input_tokens": 3, "output_tokens": 4})
    record = tape.result(usage={"input_tokens": 1, "cache_creation_input_tokens": 2})
    assert record.usage.counted_tokens == 10


@given(st.lists(st.integers(1, 10**7), max_size=40))
@settings(max_examples=tries(100, 1_000), deadline=None)
def test_money_does_not_drift(steps: list[int]) -> None:
    tape = ready()
    told = 0.0
    for step in steps:
        told += step / 1_000_000
        tape.result(total_cost_usd=told)
    assert tape.record.usage.micros == sum(steps)


def test_only_the_time_at_work_counts() -> None:
    tape = ready()  # created 1000, queued 1001, intended 1002, started, ready 1004
    tape.tell(stream.PAUSED, cause="person")  # 1005: three seconds
    assert tape.record.worked(9999) == 3
    tape.tell(stream.PAUSED, cause="budget")
    tape.tell(stream.UNPAUSED, cause="person")
    tape.tell(stream.UNPAUSED, cause="budget")  # 1008
    assert tape.record.worked(1010) == 5
    tape.end(code=0)  # 1009
    assert (tape.record.worked(9999), tape.record.seconds) == (4, 4)


# --- approvals


@pytest.mark.parametrize("how", ["decided", "expired", "cancelled"])
def test_it_awaits_approval_until_all_are_settled(how: str) -> None:
    tape = ready()
    tape.write("a")
    tape.ask("a1", id="not this", command="ls")
    tape.ask("a2")
    tape.settle("a1", how)
    assert (tape.record.state, tape.record.approvals) == ("awaiting approval", ["a2"])
    tape.settle("a1", how)
    assert tape.settle("a2", how).state == "running"


def test_an_approval_too_large_to_show_its_id_is_waited_for_all_the_same() -> None:
    tape = ready()
    tape.write("a")
    tape.ask("a1")
    tape.put(approvals.REQUESTED, b'{"session":"s1","launch":"l1","kind":"tool","inp', is_cut=True)
    tape.settle("a1")
    assert tape.record.state == "awaiting approval"
    assert tape.settle("large").state == "running"


def test_approvals_of_an_earlier_process_hold_nobody() -> None:
    tape = ready()
    tape.ask("a1")
    assert tape.end(code=0).approvals == ["a1"]
    assert tape.run("l2").state == "idle"


# --- what must be published


def test_a_change_of_state_is_told_until_it_is_in_the_stream() -> None:
    tape = Tape()
    was = tape.record.state
    record = tape.tell(stream.QUEUED)
    told = changes(was, record, 5.0, "created")
    assert told == StateChanged(was="stopped", now="queued", at=5.0, why="created")
    assert changes(record.published, record, 6.0) is not None
    tape.put(stream.STATE, told)
    assert changes(record.published, record, 7.0) is None
    tape.tell(stream.LIMITED, until=99.0)
    told = changes(record.published, record, 8.0)
    assert told
    assert (told.now, told.until) == ("rate limited", 99.0)


# --- whatever is in it


def test_an_event_that_is_in_it_changes_nothing() -> None:
    tape = ready()
    tape.write("a")
    tape.result(total_cost_usd=1.0)
    before = snapshot(tape.record)
    for entry in tape.entries:
        fold(tape.record, entry)
    assert snapshot(tape.record) == before


@given(st.data())
@settings(max_examples=tries(10, 40), deadline=None)
def test_a_record_that_was_kept_goes_on_like_one_that_was_not(data: st.DataObject) -> None:
    tape = Tape()
    for _ in range(data.draw(st.integers(0, 25))):
        steps = next_steps(tape.record)
        steps[data.draw(st.sampled_from(sorted(steps)))](tape)
    cut = data.draw(st.integers(0, len(tape.entries)))
    record: SessionRecord | None = None
    for entry in tape.entries[:cut]:
        record = fold(record, entry)
    record = restored(snapshot(record or blank()))
    for entry in tape.entries[cut:]:
        record = fold(record, entry)
    assert record == tape.record


KINDS = [*BODIES, approvals.REQUESTED, approvals.DECIDED, "tool.judged", "of.tomorrow"]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=8,
)
NAMES = st.sampled_from(["launch", "end", "type", "line", "id", "uuid", "at", "how", "what", "is"])


@given(st.lists(st.tuples(st.sampled_from(KINDS), st.binary(max_size=30), st.booleans())))
@settings(max_examples=tries(50, 500), deadline=None)
def test_bodies_of_any_bytes_never_raise(events: list[tuple[str, bytes, bool]]) -> None:
    tape = ready()
    for kind, body, is_cut in events:
        tape.put(kind, body, is_cut=is_cut)
    assert tape.record.id == "s1"


@given(st.sampled_from(KINDS), st.dictionaries(NAMES, VALUES), st.booleans())
@settings(max_examples=tries(50, 500), deadline=None)
def test_bodies_of_any_shape_never_raise(kind: str, body: dict[str, Any], is_cut: bool) -> None:
    tape = ready()
    tape.put(kind, msgspec.json.encode(body), is_cut=is_cut)
    line = {"launch": "l1", "end": 1, "type": body.get("type") or "result", "line": body}
    tape.put(stream.SAID, msgspec.json.encode(line), is_cut=is_cut)
    assert tape.record.state


#: Kinds that change nothing in a record.
UNTOLD = {
    *(stream.BEGUN, stream.TAKEN_UP, stream.OPENED, stream.HELD),
    *(stream.RELEASED, stream.CLOSED, stream.CHILD_CREATED),
}


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"launch":1}', b'{"launch":"l1"}', b"\xff"])
def test_what_cannot_be_read_is_counted(body: bytes) -> None:
    tape = ready()
    told = set(BODIES) - UNTOLD
    for kind in told:
        tape.put(kind, body)
    assert tape.record.unreadable == len(told)


@pytest.mark.parametrize("total", [-1, 1e300, 0, 12])
def test_odd_sums_of_money_are_survived(total: float) -> None:
    assert 0 <= ready_result(total).cost_usd <= 1e9


def ready_result(total: float) -> SessionRecord:
    return ready().result(total_cost_usd=total)


@pytest.mark.parametrize("wire", WIRES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_what_real_clis_said_ends_idle_with_all_prompts_answered(wire: Path) -> None:
    tape = ready()
    total, latest = 0.0, 0.0
    for number, line in enumerate(wire.read_text().splitlines()):
        note = json.loads(line)
        message = note["msg"]
        if not isinstance(message, dict) or "type" not in message:
            continue
        if note["dir"] == "in" and message["type"] == "user":
            tape.write(message.get("uuid", f"u{number}"))
        elif note["dir"] == "out" and not message["type"].startswith("control"):
            kind = message["type"]
            tape.say(f"{kind}/{message['subtype']}" if kind == "system" else kind, message)
            if kind == "result":
                cost = message["total_cost_usd"]
                total += cost - latest if cost >= latest else cost
                latest = cost
    record = tape.record
    assert record.unreadable == 0
    assert record.cost_usd == pytest.approx(total)
    if record.turns:
        assert (record.state, record.unanswered) == ("idle", [])
        assert record.claude_session_id


def test_of_an_ordinary_line_no_more_is_read_than_its_head() -> None:
    """However long it is: what can't be read behind the head is not even noticed."""
    tape = ready()
    tape.write("a")
    tape.begin()
    tape.say("assistant", {"session_id": "c1", "text": "x" * 100_000})
    whole = tape.entries[-1].body
    record = tape.put(stream.SAID, whole[:1_000] + b"\xff" * 100_000)
    assert (record.unreadable, record.state) == (0, "running")


def test_a_line_whose_head_is_in_another_order_is_read_too() -> None:
    tape = ready()
    tape.write("u1")
    body = {"line": {"subtype": "success", "session_id": "c"}, "type": "result", "end": 5}
    record = tape.put(stream.SAID, msgspec.json.encode(body | {"launch": "l1"}))
    assert record.launch
    assert (record.launch.output_end, record.state) == (5, "idle")
    wrote = {"what": "prompt", "id": "u2", "launch": "l1", "start": 0, "line": Raw(b"1")}
    assert tape.put(stream.WROTE, msgspec.json.encode(wrote)).unanswered == ["u2"]
