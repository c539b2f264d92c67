"""What a scenario has in hand while a `bridle.Session` runs, and the approvers that it may give."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TypeVar

import pytest
from msgspec import Struct

import bridle
from bridle.errors import SessionEnded
from bridle.process.child import ChildProcess
from bridle.process.recording import Recorder
from bridle.protocol.blocks import KnownBlock, TextBlock
from bridle.protocol.careful import read_line
from bridle.protocol.content import tool_output, tool_results
from bridle.protocol.control import CanUseTool
from bridle.protocol.messages import Assistant, Message, Result, User
from bridle.protocol.permissions import Allow, Decision
from bridle.protocol.unknown import Unknown
from bridle.session.transcripts import StoredEntry
from bridle.session.turns import Tap
from bridle.session.wirelog import Direction
from bridle.testing import Hold, ScriptedModel

LIMIT_SECONDS = 60.0

_M = TypeVar("_M", bound=Message)


class Heard(Struct):
    """All that was said in one turn, to its result."""

    messages: list[Message | Unknown]
    result: Result

    def of(self, kind: type[_M]) -> list[_M]:
        return [message for message in self.messages if isinstance(message, kind)]

    def said(self) -> list[str]:
        """The texts of the agent."""
        blocks = (block for message in self.of(Assistant) for block in message.message.content)
        return [block.text for block in blocks if isinstance(block, TextBlock)]

    def outputs(self) -> list[str]:
        """The texts of all tool results."""
        found = (tool_output(block) for one in self.of(User) for block in tool_results(one))
        return [getattr(output, "text", repr(output)) for output in found]

    def last_output(self) -> tuple[str, bool]:
        """The text of the newest tool result, and whether it is an error."""
        return last_output(self.of(User))


def last_output(messages: Sequence[User]) -> tuple[str, bool]:
    results = [block for message in messages for block in tool_results(message)]
    output = tool_output(results[-1])
    return getattr(output, "text", repr(output)), bool(results[-1].is_error)


class Wire:
    """Every line of a session, as it was; also into a recording, where one is wanted."""

    def __init__(self, recorder: Recorder | None) -> None:
        self._recorder = recorder
        self.sent: list[bytes] = []
        self.received: list[bytes] = []

    def log(self, direction: Direction, line: bytes) -> None:
        (self.sent if direction == "in" else self.received).append(line)
        if self._recorder:
            record = self._recorder.sent if direction == "in" else self._recorder.received
            record(line + b"\n")

    def messages(self, kind: type[_M]) -> list[_M]:
        """What the CLI said so far, of whatever turn and of none."""
        said = (read_line(line).decoded for line in self.received)
        return [message for message in said if isinstance(message, kind)]

    def complained(self, text: str) -> None:
        if self._recorder:
            self._recorder.stderr(text)

    def note(self, value: object) -> None:
        if self._recorder:
            self._recorder.note(value)


class Talk(Struct):
    """A session that runs, the model behind it, its process and its wire."""

    session: bridle.Session
    model: ScriptedModel
    process: ChildProcess
    wire: Wire
    tap: Tap

    async def say(
        self, prompt: str | Sequence[KnownBlock | str], limit: float = LIMIT_SECONDS
    ) -> Heard:
        """One prompt, and all that is said until its result."""
        return await hear(await self.session.send(prompt), limit)

    async def has_read(self) -> None:
        """Wait until the CLI has read all that was sent: what is asked after it was answered."""
        await self.session.mcp_status()

    async def end(self) -> SessionEnded:
        """Wait until the CLI has gone: how it went, as whoever sends something is told."""
        async with asyncio.timeout(LIMIT_SECONDS):
            async for _ in self.tap:
                pass
        with pytest.raises(SessionEnded) as raised:
            await self.session.send("too late")
        # Who listens from now on is told at once that there is nothing to hear.
        async with asyncio.timeout(LIMIT_SECONDS):
            assert [message async for message in self.session.messages()] == []
        return raised.value


async def hear(turn: bridle.Turn, limit: float = LIMIT_SECONDS) -> Heard:
    async with asyncio.timeout(limit):
        messages = [message async for message in turn]
        return Heard(messages, await turn.result())


async def reached(hold: Hold) -> None:
    """The model's stream has come to this point."""
    await asyncio.wait_for(hold.reached.wait(), LIMIT_SECONDS)


class Judge:
    """An approver that decides at once, always the same, and remembers what it was asked."""

    def __init__(self, decision: Decision | None = None) -> None:
        self._decision = decision or Allow()
        self.asked: list[CanUseTool] = []

    @property
    def tools(self) -> list[str]:
        return [request.tool_name for request in self.asked]

    def __call__(self, request: CanUseTool) -> Decision:
        self.asked.append(request)
        return self._decision


class Question(Struct):
    """One that waits for the test; its `decision` is cancelled where the CLI withdraws it."""

    request: CanUseTool
    decision: asyncio.Future[Decision]

    async def withdrawn(self) -> bool:
        await asyncio.wait([self.decision], timeout=LIMIT_SECONDS)
        return self.decision.cancelled()


class Desk:
    """An approver that leaves each decision to the test."""

    def __init__(self) -> None:
        self._questions: asyncio.Queue[Question] = asyncio.Queue()

    async def __call__(self, request: CanUseTool) -> Decision:
        question = Question(request, asyncio.get_running_loop().create_future())
        self._questions.put_nowait(question)
        return await question.decision

    async def question(self) -> Question:
        """The next thing that is asked."""
        return await asyncio.wait_for(self._questions.get(), LIMIT_SECONDS)


def prompts(branch: Sequence[StoredEntry]) -> list[str]:
    """What the user said in a branch of a stored session."""
    said = (entry.message for entry in branch)
    return [words for one in said if isinstance(one, User) and (words := _words(one))]


def _words(said: User) -> str:
    # Where a fork copies a prompt, it writes it as blocks.
    content = said.message.content
    if isinstance(content, str):
        return content
    return "".join(block.text for block in content if isinstance(block, TextBlock))
