"""What a restart must not loosen, lose or leave running, point by point."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bridle.approvals import AcceptElicitation, Approve, ForSession, Reject
from bridle.errors import InvalidLaunch, JournalClosed, SupervisorError
from bridle.journal import NewEvent, open_journal
from bridle.policy import Call
from bridle.policy.verdicts import Denied
from bridle.supervisor import Supervisor, charge
from bridle.supervisor.guards import Guards
from bridle.supervisor.takeover import Saved, saved_state
from bridle.views import stream

from .homes import (
    ASKS,
    DONE,
    INIT,
    LIMIT,
    ME,
    PROMPT,
    TURN,
    WORKS,
    Home,
    asked,
    bodies,
    first_of,
    settled,
    until,
)

NUL = "\x00"


def verdict(supervisor: Supervisor, session: str, command: str) -> Any:
    policy = supervisor.live(session).policy
    assert policy
    return policy.judge(Call("Bash", {"command": command}))


async def test_a_mode_that_was_tightened_stays_so(home: Home) -> None:
    async with home.open(keep=True) as supervisor:
        await home.start(supervisor, *TURN, PROMPT, name="a", policy="edits")
        await until(supervisor, "a", "idle")
        await supervisor.live("a").set_permission_mode("default")
        before = supervisor.live("a").policy
        assert before
        assert before.policy.preset == "ask"
    async with home.open() as supervisor:
        after = supervisor.live("a").policy
        assert after
        assert after.policy.preset == "ask"


async def test_rules_that_the_folder_had_at_the_launch_hold_on(home: Home) -> None:
    policy = home.work.parent / "policy.toml"
    policy.write_text('preset = "ask"\nallow = ["Bash(echo:*)"]\n')
    settings = home.work / ".claude" / "settings.json"
    async with home.open(keep=True) as supervisor:
        await home.start(supervisor, *WORKS, name="a", policy=policy, start=False)
        settings.parent.mkdir()
        settings.write_text(json.dumps({"permissions": {"deny": ["Bash(echo:*)"]}}))
        await supervisor.resume("a")
        await until(supervisor, "a", "running")
        assert isinstance(verdict(supervisor, "a", "echo hi"), Denied)
    settings.unlink()
    async with home.open() as supervisor:
        assert isinstance(verdict(supervisor, "a", "echo hi"), Denied)


async def test_an_end_with_many_strange_last_words_is_understood(home: Home) -> None:
    noise = {"stderr": NUL * 100_000}
    fails = {"result": {"result": NUL * 300_000, "is_error": True, "subtype": "success"}}
    async with home.open() as supervisor:
        await home.start(supervisor, PROMPT, INIT, noise, fails, {"die": "SIGKILL"}, name="a")
        record = await until(supervisor, "a", "failed")
        assert record.launch
        assert record.launch.stderr
        assert record.unreadable == 0
        await supervisor.resume("a")
        await until(supervisor, "a", "idle", "running", "failed")


@pytest.mark.slow
async def test_stderr_in_large_pieces_is_stored_once(home: Home) -> None:
    async with home.open(keep=True) as supervisor:
        await home.start(supervisor, PROMPT, {"stderr": NUL * 150_000}, INIT, name="a")
        await supervisor.wait("a", lambda r: r.facts.is_turn_running and r.launch is not None)
        heard = sum([len(b.text) for b in await all_stderr(supervisor, "a", 150_000)])
        assert heard == 150_000
    async with home.open() as supervisor:
        await until(supervisor, "a", "running")
        told: list[stream.Stderr] = await bodies(supervisor, "a", stream.STDERR)
        assert sum(len(body.text) for body in told) == 150_000


async def all_stderr(supervisor: Supervisor, session: str, size: int) -> list[stream.Stderr]:
    async with asyncio.timeout(LIMIT):
        async for _ in supervisor.journal.log.follow(supervisor.get(session).id):
            told: list[stream.Stderr] = await bodies(supervisor, session, stream.STDERR)
            if sum(len(body.text) for body in told) >= size:
                return told
    raise AssertionError("the log was closed")


async def test_too_large_a_session_is_refused_and_others_are_born(home: Home) -> None:
    async with home.open() as supervisor:
        with pytest.raises(InvalidLaunch, match="256 KB"):
            await home.start(supervisor, *TURN, labels={"x": "x" * 300_000})
        await home.start(supervisor, *TURN, {"exit": 0}, name="a")
        await until(supervisor, "a", "stopped")


async def test_strange_things_in_the_spool_are_no_obstacle_and_links_are_not_followed(
    home: Home, tmp_path: Path
) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("mine")
    spool = home.folder / "spool"
    (spool / "stale" / "sub").mkdir(parents=True)
    (spool / "odd" / "lock").mkdir(parents=True)
    (spool / "link").symlink_to(precious)
    (spool / "probe-1").write_text("")
    async with home.open() as supervisor:
        assert supervisor.list() == []
    assert (precious / "file").read_text() == "mine"
    assert not (spool / "link").is_symlink()
    assert not (spool / "stale").exists()
    assert not (spool / "probe-1").exists()


async def test_a_handshake_that_was_refused_meanwhile_is_no_handshake(home: Home) -> None:
    slow = {"replies": {"initialize": None}}
    refusal = {"subtype": "error", "request_id": "R", "error": "no"}
    async with home.open(keep=True) as supervisor:
        made = await home.start(supervisor, {"pause": 3600.0}, name="a", settings=slow)
        [wrote] = await first_of(supervisor, made.id, stream.WROTE)
        launch = supervisor.get("a").launch
        assert launch
        output = home.folder / "spool" / launch.id / "stdout"
    line = json.dumps({"type": "control_response", "response": {**refusal, "request_id": wrote.id}})
    with output.open("a") as file:
        file.write(line + "\n")
    async with home.open() as supervisor:
        record = await until(supervisor, "a", "failed")
        assert record.turns == 0
        assert home.alive() == []


async def test_a_saved_state_of_an_earlier_launch_is_not_used(home: Home) -> None:
    async with home.open() as supervisor:
        await home.start(supervisor, *TURN, PROMPT, name="a")
        made = await until(supervisor, "a", "idle")
        assert made.launch
        of_it = await saved_state(supervisor._means, made.id, made.launch.id)
        assert of_it.seq
        other = await saved_state(supervisor._means, made.id, "another")
        assert (other.launch, other.seq) == ("another", 0)


async def test_a_saved_state_of_another_version_is_not_needed(home: Home) -> None:
    async with home.open(keep=True) as supervisor:
        made = await home.start(supervisor, *ASKS, PROMPT, name="a")
        approval = await asked(supervisor, made.id)
        bucket = supervisor.journal.bucket("takeovers", Saved)
        kept = await bucket.get(made.id)
        assert kept
        odd = {"launch": kept.value.launch, "seq": 9, "inbox": 0, "session": None}
        book = {"waiting": [], "joined": [], "is_running": False}
        book |= {"session_id": None, "permission_mode": None}
        saved = {"format": "bridle-session-1", "connection": {"format": "other"}, "book": book}
        raw = msgspec.json.encode({**odd, "session": saved})
        await supervisor.journal.records.put("takeovers", made.id, raw, kept.revision)
    async with home.open() as supervisor:
        await supervisor.approvals.decide(approval.id, Approve(), by=ME)
        await supervisor.wait("a", lambda record: record.turns == 1, LIMIT)


async def test_an_agent_whose_spool_is_gone_is_ended_and_that_is_told(home: Home) -> None:
    async with home.open(keep=True) as supervisor:
        await home.start(supervisor, *WORKS, {"pause": 3600.0}, name="a")
        record = await until(supervisor, "a", "running")
        assert record.launch
    shutil.rmtree(home.folder / "spool" / record.launch.id)
    async with home.open() as supervisor:
        record = await until(supervisor, "a", "failed", "lost")
        assert home.alive() == []
        await supervisor.resume("a")


async def test_hooks_that_can_not_be_made_are_told_and_end_no_agent(home: Home) -> None:
    async with home.open(keep=True) as supervisor:
        await home.start(supervisor, *WORKS, {"pause": 3600.0}, name="a")
        await until(supervisor, "a", "running")

    def broken(_: object) -> Any:
        raise RuntimeError("no hooks today")

    with pytest.raises(SupervisorError, match="no hooks today"):
        async with home.open(hooks=broken):
            raise AssertionError("it was opened")
    async with home.open() as supervisor:
        assert supervisor.recovered.alive
        assert supervisor.get("a").state == "running"


@pytest.mark.slow
async def test_too_many_rules_in_a_folder_are_told_and_nothing_is_started(home: Home) -> None:
    settings = home.work / ".claude" / "settings.json"
    async with home.open() as supervisor:
        await home.start(supervisor, *TURN, name="a", start=False)
        settings.parent.mkdir()
        rules = [f"Bash(echo {number}{'x' * 100})" for number in range(4_000)]
        settings.write_text(json.dumps({"permissions": {"deny": rules}}))
        await supervisor.resume("a")
        record = await until(supervisor, "a", "failed")
        assert record.launch
        assert "rules" in record.launch.words
        assert home.alive() == []


async def test_an_error_of_any_length_is_an_end(home: Home) -> None:
    def broken(_: object) -> Any:
        raise RuntimeError(NUL * 300_000)

    async with home.open(hooks=broken) as supervisor:
        await home.start(supervisor, *TURN, name="a")
        record = await until(supervisor, "a", "failed")
        assert record.unreadable == 0


async def test_one_that_is_to_stop_and_whose_spool_is_gone_is_ended(home: Home) -> None:
    async with home.open(keep=True) as supervisor:
        made = await home.start(supervisor, *WORKS, {"pause": 3600.0}, name="a")
        record = await until(supervisor, "a", "running")
        assert record.launch
        launch = record.launch.id
    async with open_journal(home.folder) as journal:
        last = (await journal.log.info(made.id)).last_seq
        await journal.log.append(made.id, [NewEvent(stream.STOP_ASKED, b'{"at":1.0}')], last)
    shutil.rmtree(home.folder / "spool" / launch)
    async with home.open() as supervisor:
        await until(supervisor, "a", "stopped")
        assert home.alive() == []
        await supervisor.resume("a")
        await until(supervisor, "a", "idle", "running")


async def test_all_that_a_stopped_agent_wrote_is_kept(home: Home) -> None:
    loud = {"repeat": 40, "steps": [{"big": 1_000_000}]}
    async with home.open() as supervisor:
        await home.start(supervisor, PROMPT, INIT, loud, {"say": "last"}, DONE, PROMPT, name="a")
        await supervisor.wait("a", lambda r: r.launch is not None and r.launch.output_end > 0)
        launch = supervisor.get("a").launch
        assert launch
        output = home.folder / "spool" / launch.id / "stdout"
        kept = os.open(output, os.O_RDONLY)
        await supervisor.stop("a")
        await until(supervisor, "a", "stopped")
        size = os.fstat(kept).st_size
        os.close(kept)
        launch = supervisor.get("a").launch
        assert launch
        assert launch.output_end == size


async def test_one_that_was_frozen_by_a_supervisor_that_died_goes_on(home: Home) -> None:
    async with home.open(keep=True) as supervisor:
        made = await home.start(supervisor, *ASKS, PROMPT, name="a")
        approval = await asked(supervisor, made.id)
        charge = supervisor._sessions.get("a")
        assert charge.agent
        await charge.agent.process.pause()
    async with home.open() as supervisor:
        await supervisor.approvals.decide(approval.id, Approve(), by=ME)
        await supervisor.wait("a", lambda record: record.turns == 1, LIMIT)


async def test_a_question_of_an_mcp_server_is_still_the_same_one(home: Home) -> None:
    elicits = {
        "request": {
            "subtype": "elicitation",
            "mcp_server_name": "db",
            "message": "Which?",
            "requested_schema": {"type": "object", "properties": {}},
        },
        "id": "e1",
    }
    async with home.open(keep=True) as supervisor:
        made = await home.start(supervisor, PROMPT, INIT, elicits, DONE, PROMPT, name="a")
        first = await asked(supervisor, made.id)
    async with home.open() as supervisor:
        again = await asked(supervisor, made.id)
        assert again.id == first.id
        await supervisor.approvals.decide(again.id, AcceptElicitation({}), by=ME)
        await supervisor.wait("a", lambda record: record.turns == 1, LIMIT)


async def test_a_session_that_was_stopped_while_it_waited_never_starts(home: Home) -> None:
    async with home.open(size=1) as supervisor:
        await home.start(supervisor, *WORKS, name="first")
        await home.start(supervisor, *TURN, name="second")
        await supervisor.stop("second")
        await supervisor.stop("first")
        await until(supervisor, "second", "stopped")
        assert supervisor.get("second").launches == 0


async def test_who_sees_that_an_agent_waits_finds_what_it_waits_for(home: Home) -> None:
    async with home.open() as supervisor:
        for name in ("a", "b", "c"):
            await home.start(supervisor, *ASKS, name=name)
            await until(supervisor, name, "awaiting approval")
            assert await supervisor.approvals.list(
                status="pending", session=supervisor.get(name).id
            )


async def test_children_are_stopped_although_the_supervisor_died_with_the_parent(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def dies(*_: object) -> None:
        """The supervisor comes no further than here."""

    with monkeypatch.context() as patch:
        patch.setattr(Guards, "_orphan", dies)
        async with home.open(keep=True) as supervisor:
            root = await home.start(supervisor, *WORKS, name="root")
            await until(supervisor, "root", "running")
            await home.start(supervisor, *WORKS, {"pause": 3600.0}, name="child", parent=root.id)
            await until(supervisor, "child", "running")
            await supervisor._sessions.get("root").stop()
            await until(supervisor, "root", "stopped")
            assert supervisor.get("child").state == "running"
    async with home.open(keep=True) as supervisor:
        await until(supervisor, "child", "stopped")
        assert home.alive() == []


async def test_who_waits_when_a_supervisor_is_closed_is_told(home: Home) -> None:
    async with home.open() as supervisor:
        await home.start(supervisor, *WORKS, name="a")
        waiting = asyncio.ensure_future(supervisor.wait("a", lambda _: False))
        await until(supervisor, "a", "running")
    with pytest.raises(JournalClosed, match="was closed"):
        await waiting


async def test_what_somebody_was_asked_is_theirs_to_decide_whatever_was_remembered_since(
    home: Home,
) -> None:
    def asks(name: str, **modifiers: Any) -> dict[str, Any]:
        call = {"tool_name": "Bash", "input": {"command": f"rm {name}"}, "tool_use_id": name}
        return {"ask": call, "id": name, **modifiers}

    cli = home.cli(PROMPT, INIT, asks("a", wait=False), asks("b"), {"await": "a"}, DONE)
    async with home.open(keep=True) as supervisor:
        await supervisor.create(cwd=home.work, by=ME, name="x", prompt="go", command=cli.command)
        await supervisor.wait("x", lambda record: len(record.approvals) == 2, LIMIT)
        found = await supervisor.approvals.list(status="pending")
        # They were asked at the same moment: either may be the first.
        first, second = sorted(found, key=lambda approval: approval.tool_use_id or "")
        choice = Approve(remember=ForSession("Bash(rm:*)"))
        await supervisor.approvals.decide(first.id, choice, by=ME)
    async with home.open() as supervisor:
        [pending] = await supervisor.approvals.list(status="pending")
        assert pending.id == second.id
        assert cli.answer_to("b") is None
        await supervisor.approvals.decide(second.id, Reject("not this one"), by=ME)
        await until(supervisor, "x", "idle")
        told = cli.answer_to("b")
        assert told
        assert told["response"]["behavior"] == "deny"
        for approval in await supervisor.approvals.list():
            assert approval.delivered


async def test_what_was_asked_by_one_that_can_not_be_taken_up_is_withdrawn_and_it_is_ended(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(charge, "TAKE_UP_PAUSES", ())
    async with home.open(keep=True) as supervisor:
        made = await home.start(supervisor, *ASKS, name="a", prompt="x" * 400_000)
        approval = await asked(supervisor, made.id)
    for payload in (home.folder / "blobs").glob("??/*"):
        payload.unlink()
    async with home.open() as supervisor:
        record = await until(supervisor, "a", "failed")
        assert record.launch
        assert "could not be taken up" in record.launch.words
        assert home.alive() == []
        assert (await settled(supervisor, approval.id)).status == "cancelled"
        assert not record.approvals
