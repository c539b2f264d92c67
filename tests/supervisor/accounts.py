"""What must add up after controllers were killed: the log, the wire, and the world outside.

Reads the journal, the spools, the fakes' own reports and the processes; changes nothing. Between
two controllers only, because a journal has one owner.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from bridle.approvals import events as asked
from bridle.journal import Event, Journal, open_journal, verify
from bridle.process.spool import Spool
from bridle.process.tree import find_tree
from bridle.session.responder import MAYBE_DONE
from bridle.supervisor.fold import fold
from bridle.supervisor.notes import entry
from bridle.supervisor.record import SessionRecord, blank
from bridle.supervisor.takeover import BUCKET, Saved
from bridle.views import stream

from .plans import Planned, read_plan

#: What is taken back after it was answered is ignored, and kept.
HEARD = (stream.SAID, stream.ASKED, stream.WITHDREW, stream.ANSWERED, stream.IGNORED)


class Account(Struct):
    """One agent's, as its stream tells it, and as its own report does."""

    agent: Planned
    id: str
    events: list[Event]
    payloads: list[bytes]
    record: SessionRecord
    report: list[dict[str, Any]]
    inbox: bytes = b""
    output: bytes = b""
    launches: list[str] = field(default_factory=list)
    #: How much of the log a controller need not read again to take it up.
    saved_seq: int = 0

    def bodies(self, *kinds: str) -> list[Any]:
        pairs = zip(self.events, self.payloads, strict=True)
        return [
            stream.body_of(stream.Entry(event.seq, event.at, event.kind, payload))
            for event, payload in pairs
            if event.kind in kinds
        ]

    def of_approvals(self, *kinds: str) -> list[Any]:
        pairs = zip(self.events, self.payloads, strict=True)
        return [asked.body_of(event, payload) for event, payload in pairs if event.kind in kinds]

    @property
    def told(self) -> list[dict[str, Any]]:
        """What has reached the agent."""
        return [line["told"] for line in self.report if "told" in line]

    @property
    def answers(self) -> dict[str, list[dict[str, Any]]]:
        found: dict[str, list[dict[str, Any]]] = {}
        for message in self.told:
            if message["type"] == "control_response":
                response = message["response"]
                found.setdefault(response["request_id"], []).append(response)
        return found

    @property
    def requests(self) -> list[str]:
        return [body.id for body in self.bodies(stream.ASKED)]

    @property
    def withdrawn(self) -> set[str]:
        return {body.id for body in self.bodies(stream.WITHDREW)}


async def accounts_of(folder: Path) -> list[Account]:
    async with open_journal(folder / "home") as journal:
        names = [info.name for info in await journal.log.streams()]
        found = [
            await _account(folder, journal, name) for name in names if name != stream.SUPERVISOR
        ]
    return [account for account in found if account]


async def _account(folder: Path, journal: Journal, name: str) -> Account | None:
    events: list[Event] = []
    while page := await journal.log.read(name, len(events), 500):
        events += page
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    verdict = await verify(journal, name)
    assert verdict.is_intact, verdict
    payloads = [await journal.payload(event) for event in events]
    record = blank(name)
    for event in events:
        record = fold(record, entry(event))
    agent = next((one for one in read_plan(folder).agents if one.name == record.name), None)
    if agent is None:  # it was killed before it could create it
        assert not record.is_created
        return None
    account = Account(agent, name, events, payloads, record, _report_of(agent))
    account.launches = [body.launch for body in account.bodies(stream.INTENDED)]
    saved = await journal.bucket(BUCKET, Saved).get(name)
    account.saved_seq = saved.value.seq if saved else 0
    spool = Spool(folder / "home" / "spool" / account.launches[-1])
    account.inbox = spool.read_inbox(0, 1 << 30)
    account.output = spool.read("stdout", 0, 1 << 30)
    return account


def _report_of(agent: Planned) -> list[dict[str, Any]]:
    path = Path(agent.report)
    lines = path.read_bytes().splitlines() if path.exists() else []
    return [msgspec.json.decode(line) for line in lines]


# --- what must hold


async def check_all(folder: Path, said: Iterable[str], *, is_running: bool) -> list[Account]:
    """All of it. `said` is what controllers were told is done."""
    accounts = await accounts_of(folder)
    names = [account.agent.name for account in accounts]
    assert sorted(names) == sorted(agent.name for agent in read_plan(folder).agents)
    for account in accounts:
        if is_running:
            check_output(account)
            check_inbox(account)
        check_prompts(account)
        check_answers(account)
        check_approvals(account)
        check_calls(account, _effects(folder))
        check_processes(account, is_running=is_running)
        check_state(account)
    check_said(accounts, said)
    live = {account.launches[-1] for account in accounts} if is_running else set()
    assert {path.name for path in (folder / "home" / "spool").iterdir()} == live
    return accounts


def check_output(account: Account) -> None:
    """Each line that it wrote is in the log once and in order, but for pieces of messages. What was
    given back to the disk is known by the numbers alone."""
    logged = [bytes(body.line) for body in account.bodies(*HEARD)]
    there = account.output.lstrip(b"\0")
    is_whole = len(there) == len(account.output)
    lines = [line for line in there.splitlines() if b'"stream_event"' not in line]
    lines = lines if is_whole else lines[1:]
    assert lines
    assert logged[-len(lines) :] == lines
    assert len(logged) == len(lines) or not is_whole
    numbers = [_number(body) for body in account.bodies(stream.SAID)]
    assert numbers == sorted(set(numbers))
    # Between two messages are the pieces of one, and those have always the same number.
    steps = [after - before for before, after in pairwise(numbers)]
    assert set(steps) == set(steps[-500:])


def _number(body: stream.Line) -> int:
    return int(msgspec.json.decode(body.line)["uuid"][-12:])


def check_inbox(account: Account) -> None:
    """Byte for byte what was written down, but for what was given back to the disk."""
    wrote = account.bodies(stream.WROTE)
    lines = [bytes(body.line) + b"\n" for body in wrote]
    assert len(account.inbox) == sum(map(len, lines))
    there = account.inbox.lstrip(b"\0")
    holes = len(account.inbox) - len(there)
    if not any(body.is_late for body in wrote):
        assert b"".join(lines)[holes:] == there
    elif not holes:
        # Those that stop something may have overtaken others.
        assert Counter(account.inbox.splitlines(keepends=True)) == Counter(lines)
    told = [msgspec.json.encode(message) for message in account.told]
    in_log = [msgspec.json.encode(msgspec.json.decode(line)) for line in lines]
    assert Counter(told) == Counter(in_log)


def check_prompts(account: Account) -> None:
    """Each was stored once, and reached the agent once and in order."""
    stored = [_prompt_number(bytes(body.line)) for body in account.bodies(stream.PROMPTED)]
    reached = [
        _prompt_number(msgspec.json.encode(message))
        for message in account.told
        if message["type"] == "user"
    ]
    assert stored == list(range(1, len(stored) + 1))
    assert reached == stored
    assert account.record.turns == len(stored)
    assert account.record.waiting == []


def _prompt_number(line: bytes) -> int:
    return int(line.split(b"#")[1])


def check_answers(account: Account) -> None:
    """Each request got one answer; one that was taken back got at most one."""
    requests, answers = account.requests, account.answers
    assert len(requests) == len(set(requests))
    assert set(answers) <= set(requests)
    for request in requests:
        count = len(answers.get(request, []))
        assert count == 1 or (count == 0 and request in account.withdrawn), (request, count)


def check_approvals(account: Account) -> None:
    """Each was asked once and ended once, and what was decided is what the agent was told."""
    requested = {body.id: body for body in account.of_approvals(asked.REQUESTED)}
    assert len(requested) == len(account.of_approvals(asked.REQUESTED))
    ended = account.of_approvals(asked.DECIDED, asked.CANCELLED, asked.EXPIRED)
    assert sorted(body.id for body in ended) == sorted(requested)
    delivered = Counter(body.id for body in account.of_approvals(asked.DELIVERED))
    assert max(delivered.values(), default=1) == 1
    for body in ended:
        call = requested[body.id].tool_use_id
        if call.endswith("-back"):
            continue
        assert type(body.ending).__name__ == "Decided", (call, body.ending)
        assert delivered[body.id] == 1, f"{call} is not marked delivered"
        is_yes = type(body.ending.choice).__name__ == "Approve"
        assert is_yes == call.endswith("-yes")
        assert _was_told(account, call) == ("allow" if is_yes else "deny")


def _was_told(account: Account, call: str) -> str:
    """The same in the hook and to the question, where there were both."""
    answers = account.answers
    found = set()
    for [answer] in filter(None, (answers.get(f"ask-{call}"), answers.get(f"hook-{call}"))):
        told = answer["response"]
        specific = told.get("hookSpecificOutput")
        found.add(str(specific["permissionDecision"] if specific else told["behavior"]))
    [decision] = found
    return decision


def check_calls(account: Account, effects: Counter[str]) -> None:
    """What may change something was done at most once; if the agent was told so, then once."""
    for request in account.requests:
        if not request.startswith(("call-", "done-")):
            continue
        assert effects[request] <= 1, f"{request} was done {effects[request]} times"
        [answer] = account.answers[request]
        if MAYBE_DONE not in str(answer):
            assert answer["subtype"] == "success"
            assert effects[request] == 1, request


def check_processes(account: Account, *, is_running: bool) -> None:
    """The shim and the CLI of the last launch, and nothing else."""
    for launch in account.launches:
        is_live = is_running and launch == account.launches[-1]
        assert len(find_tree(0, launch)) == (2 if is_live else 0)


def check_state(account: Account) -> None:
    """The stream says in which state it is."""
    states = account.bodies(stream.STATE)
    assert states[-1].now == account.record.state
    for before, after in pairwise(states):
        assert after.was == before.now
    assert account.record.approvals == []


def check_said(accounts: list[Account], said: Iterable[str]) -> None:
    """What a controller was told is done is in the log."""
    prompts = {account.agent.name: account.record.turns for account in accounts}
    decided = Counter(
        body.id for account in accounts for body in account.of_approvals(asked.DECIDED)
    )
    for line in said:
        match line.split():
            case ["sent", name, number]:
                assert int(number) <= prompts[name]
            case ["allowed" | "denied", approval]:
                assert decided[approval] == 1


def _effects(folder: Path) -> Counter[str]:
    path = folder / "effects"
    return Counter(path.read_text().split() if path.exists() else [])
