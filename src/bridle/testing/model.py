"""A scripted model: Anthropic's Messages API on 127.0.0.1, playing a script to a real CLI.

Owns which turn answers which request, and the record of what was sent. Side calls of the CLI
(titles, topics, warm-ups) are answered by themselves and use up no turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Self

import msgspec

from ..errors import InvalidScript, UnexpectedTraffic
from .environment import cli_environment
from .http import ConnectionDropped, HttpRequest, HttpResponse, HttpServer
from .model_request import ModelRequest, parse_request
from .model_stream import count_tokens, wait_through, whole_message, write_stream
from .script import Conversation, Fail, MakeTurn, Turn
from .side_calls import answer_side_call


class ScriptedModel:
    """Plays turns to whatever CLI is pointed at it.

        async with ScriptedModel(["Hello."]) as model:
            env = model.environment(home)

    Several conversations at once: `ScriptedModel(parent_turns, Conversation(child_turns,
    when=says("review")))`. On a clean exit, requests that the script had no answer for raise.
    """

    def __init__(
        self, *scripts: Sequence[Turn | str | MakeTurn] | Conversation, port: int = 0
    ) -> None:
        if not scripts:
            raise InvalidScript("a ScriptedModel needs a script, such as ScriptedModel(['Hello.'])")
        given = [s if isinstance(s, Conversation) else Conversation(s) for s in scripts]
        # A conversation that takes any request must not hide one that picks its own.
        self._conversations = sorted(given, key=lambda conversation: conversation.when is None)
        self._server = HttpServer(self._handle, port)
        self._answered = 0
        self.requests: list[ModelRequest] = []
        self.side_calls: list[ModelRequest] = []
        self.problems: list[str] = []

    async def __aenter__(self) -> Self:
        await self._server.__aenter__()
        return self

    async def __aexit__(self, kind: object, *_: object) -> None:
        await self._server.__aexit__()
        if kind is None:
            self.check()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.port}"

    @property
    def unplayed(self) -> int:
        """How many turns were never asked for."""
        return sum(len(c.turns) - min(c.played, len(c.turns)) for c in self._conversations)

    def environment(self, home: Path | str) -> dict[str, str]:
        """The environment for a CLI that talks to this model and keeps its files below `home`."""
        return cli_environment(Path(home), base_url=self.base_url)

    def check(self) -> None:
        """Raise if the CLI sent something that the script had no answer for."""
        if self.problems:
            raise UnexpectedTraffic("; ".join(self.problems))

    async def _handle(self, request: HttpRequest) -> HttpResponse:
        try:
            return await self._respond(request)
        except ConnectionDropped:
            raise
        except Exception as error:  # noqa: BLE001 - a matcher's mistake must not be a silent hang
            return self._problem(f"the script failed: {error!r}")

    async def _respond(self, request: HttpRequest) -> HttpResponse:
        path = request.path.partition("?")[0]
        if request.method == "HEAD" or path == "/":
            return HttpResponse(200, b"")
        parsed = parse_request(request.body, request.headers) if request.method == "POST" else None
        if parsed is None:
            return _error(404, "not_found_error", f"{request.method} {path} is not scripted")
        if path == "/v1/messages/count_tokens":
            return HttpResponse(200, msgspec.json.encode({"input_tokens": count_tokens(parsed)}))
        if path != "/v1/messages":
            return _error(404, "not_found_error", f"{path} is not scripted")
        side = answer_side_call(parsed)
        if side:
            self.side_calls.append(parsed)
            return await self._send(side, parsed)
        self.requests.append(parsed)
        turn = self._choose(parsed)
        return self._problem(turn) if isinstance(turn, str) else await self._send(turn, parsed)

    def _problem(self, words: str) -> HttpResponse:
        # A CLI tries again and again; once is enough to say.
        if words not in self.problems:
            self.problems.append(words)
        return _error(400, "invalid_request_error", words)

    def _choose(self, request: ModelRequest) -> Turn | str:
        """The turn that answers, or why there is none."""
        for conversation in self._conversations:
            if conversation.when is None or conversation.when(request):
                turn = conversation.next_turn(request)
                if turn is None:
                    return (
                        f"the script is over, and the CLI asks on: {request!r}; add a Turn, or "
                        "answer the rest with Conversation(…, then=…)"
                    )
                if turn.when and not turn.when(request):
                    return f"turn {conversation.played + 1} does not expect {request!r}"
                conversation.played += 1
                return turn
        return f"no conversation is scripted for {request!r}; add one whose `when` picks it"

    async def _send(self, turn: Turn, request: ModelRequest) -> HttpResponse:
        self._answered += 1
        number = self._answered
        headers = {"request-id": f"req_scripted_{number:04d}"}
        if request.body.get("stream") and not turn.failure:
            body = write_stream(turn, request, number)
            return HttpResponse(200, body, "text/event-stream", headers)
        await wait_through(turn)
        last = turn.pieces[-1]
        if isinstance(last, Fail):
            return _failure(last, headers)
        message = msgspec.json.encode(whole_message(turn, request, number))
        return HttpResponse(200, message, headers=headers)


def _failure(failure: Fail, headers: dict[str, str]) -> HttpResponse:
    if failure.retry_after is not None:
        headers["retry-after"] = f"{failure.retry_after:g}"
    response = _error(failure.status, failure.kind, failure.message)
    return msgspec.structs.replace(response, headers=headers)


def _error(status: int, kind: str, message: str) -> HttpResponse:
    body = {"type": "error", "error": {"type": kind, "message": message}}
    return HttpResponse(status, msgspec.json.encode(body))
