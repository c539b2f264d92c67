"""A fake Claude Code CLI that plays a scenario and misbehaves on demand.

    python -m bridle.testing.fake_claude --scenario FILE [the real CLI's flags, ignored]

Owns one process's side of the wire; imports the standard library alone, so that it starts as fast
as Python does. The scenario is JSON: a list of steps, or {"steps": […], "version", "session_id",
"replies"}. A step is an object with one verb: `scenario.VERBS` lists them, docs/testing.md too.

While it waits it answers the controller's requests: by `replies` ({subtype: response}, where null
means never, and {"error": …} an error), else with an empty success. Everything that it is told
goes to the file `--report`, one JSON object a line.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` is not imported at run time: it would take longer than the rest.
    from collections.abc import Callable
    from typing import Any, NoReturn, TypeAlias

    Json: TypeAlias = dict[str, Any]

READ_SIZE = 1 << 16
FOREVER = 1e9
CWD = os.getcwd()  # noqa: PTH109


class FakeClaude:
    """Plays one scenario over stdin and stdout."""

    def __init__(self, scenario: Json, report: str | None) -> None:
        self.steps = scenario["steps"]
        self.version = scenario.get("version", "2.1.325")
        self.session_id = scenario.get("session_id", "00000000-0000-4000-8000-000000000000")
        self.replies = scenario.get("replies", {})
        self.report_file = open(report, "a") if report else None  # noqa: SIM115, PTH123
        self.buffer = b""
        self.eof = False
        self.prompts: list[Json] = []
        self.answers: dict[str, Json] = {}
        self.hooks: dict[str, list[Json]] = {}
        self.requests: list[Json] = []
        self.asked: dict[str, Json] = {}
        self.said = 0
        #: Stdin was closed while a step waited for more: a real CLI would end here too.
        self.is_starved = False
        self.step: Json = {}

    def play(self, steps: list[Json]) -> None:
        for step in steps:
            self.step = step
            verb = next(key for key in step if hasattr(self, f"do_{key}"))
            getattr(self, f"do_{verb}")(step[verb])
            if self.eof and self.is_starved:
                return

    # --- speaking

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(1, view) :]

    def send(self, message: Json) -> None:
        self.write(json.dumps(message).encode() + b"\n")

    def speak(self, message: Json) -> None:
        self.said += 1
        uuid = f"00000000-0000-4000-8000-{self.said:012d}"
        ids = {"session_id": self.session_id, "uuid": uuid, "parent_tool_use_id": None}
        self.send({**message, **{key: ids[key] for key in ids if key not in message}})

    def report(self, **entry: object) -> None:
        if self.report_file:
            self.report_file.write(json.dumps(entry) + "\n")
            self.report_file.flush()

    def assistant(self, block: Json) -> Json:
        shell = {"type": "message", "role": "assistant", "model": "fake", "stop_reason": None}
        usage = {"input_tokens": 1, "output_tokens": 1}
        inner = {"id": f"msg_fake_{self.said}", "content": [block], "usage": usage, **shell}
        return {"type": "assistant", "message": inner}

    def do_init(self, extra: Json) -> None:
        known = {"cwd": CWD, "model": "fake", "permissionMode": "default", "tools": []}
        version = {"claude_code_version": self.version}
        self.speak({"type": "system", "subtype": "init", **known, **version, **extra})

    def do_say(self, text: str) -> None:
        self.speak(self.assistant({"type": "text", "text": text}))

    def do_tool_use(self, block: Json) -> None:
        self.speak(self.assistant({"type": "tool_use", "input": {}, "id": "toolu_fake", **block}))

    def do_message(self, message: Json) -> None:
        self.speak(message)

    def do_result(self, extra: str | Json) -> None:
        extra = {"result": extra} if isinstance(extra, str) else extra
        known = {"subtype": "success", "is_error": False, "num_turns": 1, "total_cost_usd": 0.0}
        self.speak({"type": "result", "duration_ms": 1, "permission_denials": [], **known, **extra})

    def do_partial(self, text: str) -> None:
        start = {**self.assistant({})["message"], "content": []}
        opening = {"type": "text", "text": ""}
        self.event(type="message_start", message=start)
        self.event(type="content_block_start", index=0, content_block=opening)
        chunk = int(self.step.get("chunk", 8))
        for at in range(0, len(text), chunk):
            delta = {"type": "text_delta", "text": text[at : at + chunk]}
            self.event(type="content_block_delta", index=0, delta=delta)
            self.pump(float(self.step.get("delay", 0)))
        self.event(type="content_block_stop", index=0)
        self.do_say(text)
        self.event(type="message_delta", delta={"stop_reason": "end_turn", "stop_sequence": None})
        self.event(type="message_stop")

    def event(self, **event: object) -> None:
        self.speak({"type": "stream_event", "event": event})

    # --- asking

    def do_prompt(self, expected: bool | str) -> None:
        self.pump_until(lambda: bool(self.prompts))
        if self.is_starved:
            return
        prompt = self.prompts.pop(0)
        if isinstance(expected, str) and expected not in json.dumps(prompt, ensure_ascii=False):
            fatal(f"expected a prompt with {expected!r}, was sent {json.dumps(prompt)[:300]}", 3)

    def do_ask(self, request: Json) -> None:
        known = {"subtype": "can_use_tool", "input": {}, "tool_use_id": "toolu_fake"}
        self.ask({**known, **request})

    def tool_result(self, request: Json, answer: Json) -> None:
        """What a real CLI would say after such an answer; the input that it got is the output."""
        decision = answer.get("response") or {}
        allowed = decision.get("behavior") == "allow"
        said = json.dumps(decision.get("updatedInput")) if allowed else decision.get("message")
        content = {
            "type": "tool_result",
            "tool_use_id": request["tool_use_id"],
            "content": said or answer.get("error") or "no answer",
            "is_error": not allowed,
        }
        self.speak({"type": "user", "message": {"role": "user", "content": [content]}})
        if decision.get("interrupt"):
            self.do_result({"subtype": "error_during_execution", "is_error": True})

    def do_hook(self, hook: Json) -> None:
        event = hook.get("hook_event_name", "PreToolUse")
        registered = self.hooks.get(event) or []
        ids = [id_ for matcher in registered for id_ in matcher.get("hookCallbackIds", [])]
        callback = hook.get("callback_id") or (ids[0] if ids else "unregistered")
        where = {"session_id": self.session_id, "transcript_path": "", "cwd": CWD}
        told = {**where, "hook_event_name": event, **hook}
        told.pop("callback_id", None)
        body = {"subtype": "hook_callback", "callback_id": callback, "input": told}
        self.ask(body)

    def do_mcp(self, request: Json) -> None:
        self.ask({"subtype": "mcp_message", **request})

    def do_request(self, request: Json) -> None:
        self.ask(request)

    def ask(self, request: Json) -> None:
        id_ = str(self.step.get("id") or f"fake-{len(self.asked) + 1}-{os.urandom(4).hex()}")
        self.asked[id_] = request
        self.send({"type": "control_request", "request_id": id_, "request": request})
        if self.step.get("wait", True):
            self.do_await(id_)

    def do_await(self, id_: str) -> None:
        if id_ not in self.asked:
            fatal(f"can't await {id_!r}: nothing was asked with this id", 2)
        self.pump_until(lambda: id_ in self.answers)
        # A real one goes on as well: it fails the request and lets the model go on.
        self.is_starved = False
        answer = self.answers.get(id_, {"error": "stdin was closed before an answer came"})
        if self.asked[id_]["subtype"] == "can_use_tool":
            self.tool_result(self.asked[id_], answer)

    def do_await_request(self, subtype: str) -> None:
        """Wait until the controller has asked this; it was answered as `replies` say."""
        self.pump_until(lambda: any(asked["subtype"] == subtype for asked in self.requests))
        found = [at for at, asked in enumerate(self.requests) if asked["subtype"] == subtype]
        del self.requests[: found[0] + 1 if found else 0]

    def do_cancel(self, id_: str) -> None:
        self.send({"type": "control_cancel_request", "request_id": id_})

    # --- misbehaving

    def do_raw(self, text: str) -> None:
        self.write(text.encode())

    def do_bytes(self, data: str) -> None:
        import base64

        self.write(base64.b64decode(data))

    def do_tear(self, message: Json) -> None:
        line = json.dumps(message).encode() + b"\n"
        pieces = int(self.step.get("pieces", 3))
        size = max(1, -(-len(line) // pieces))
        for at in range(0, len(line), size):
            self.write(line[at : at + size])
            self.pump(float(self.step.get("delay", 0.001)))

    def do_nonsense(self, size: int) -> None:
        import random

        noise = random.Random(size).randbytes(size)
        self.write(noise.replace(b"{", b"\x00") + b"\n")

    def do_big(self, size: int) -> None:
        self.do_say("x" * size)

    def do_pause(self, seconds: float) -> None:
        self.pump(seconds)

    def do_stall(self, seconds: float) -> None:
        time.sleep(seconds)

    def do_stderr(self, text: str) -> None:
        os.write(2, text.encode())

    def do_ignore(self, names: list[str]) -> None:
        for name in names:
            signal.signal(getattr(signal, name), signal.SIG_IGN)

    def do_spawn(self, how: Json) -> None:
        """Leave a process behind: in a session of its own unless told otherwise."""
        running, started = os.pipe()
        pid = os.fork()
        if pid == 0:
            if how.get("new_session", True):
                os.setsid()
            quiet = os.open(os.devnull, os.O_RDWR)
            for fd in (0, 1, 2):
                os.dup2(quiet, fd)
            os.execvp("sleep", ["sleep", str(how.get("seconds", 60))])
        # The pipe's other end is closed by exec: then the process is what it is to be.
        os.close(started)
        os.read(running, 1)
        os.close(running)
        self.report(spawned=pid)
        self.speak({"type": "system", "subtype": "informational", "content": f"spawned {pid}"})

    def do_close_stdout(self, _: bool) -> None:
        os.close(1)

    def do_die(self, name: str) -> None:
        os.kill(os.getpid(), getattr(signal, name))
        time.sleep(FOREVER)

    def do_exit(self, code: int) -> None:
        os._exit(code)

    def do_repeat(self, times: int) -> None:
        steps = self.step["steps"]
        for _ in range(times):
            self.play(steps)

    # --- listening

    def pump_until(self, done: Callable[[], bool]) -> None:
        while not done() and not self.eof:
            self.pump(FOREVER, once=True)
        self.is_starved = not done()

    def pump(self, seconds: float, once: bool = False) -> None:
        """Read and answer for so long, or until something has come."""
        end = time.monotonic() + seconds
        while not self.eof:
            left = max(0.0, end - time.monotonic())
            ready = select.select([0], [], [], min(left, 3600.0))[0]
            if ready:
                self.take(os.read(0, READ_SIZE))
            if once or not (ready or left):
                return

    def take(self, data: bytes) -> None:
        self.eof = not data
        *lines, self.buffer = (self.buffer + data).split(b"\n")
        for line in lines:
            try:
                self.told(json.loads(line))
            except (ValueError, KeyError, TypeError):
                # So do the real ones.
                fatal(f"Error parsing streaming input line: {line[:200]!r}", 1)

    def told(self, message: Json) -> None:
        kind = message["type"]
        self.report(told=message)
        if kind == "user":
            self.prompts.append(message)
        elif kind == "control_response":
            response = message["response"]
            self.answers.setdefault(response["request_id"], response)
        elif kind == "control_request":
            self.requests.append(message["request"])
            self.reply(message["request_id"], message["request"])

    def reply(self, id_: str, request: Json) -> None:
        subtype = request["subtype"]
        if subtype == "initialize":
            self.hooks = request.get("hooks") or {}
        body = self.replies.get(subtype, {})
        if body is None:
            return
        if subtype == "initialize":
            body = {**says_of_itself(self.version), **body}
        if "error" in body:
            response = {"subtype": "error", "request_id": id_, **body}
        else:
            response = {"subtype": "success", "request_id": id_, "response": body}
        self.send({"type": "control_response", "response": response})


def says_of_itself(version: str) -> Json:
    """As a CLI does in its answer to `initialize`: old ones say nothing."""
    parts = version.split(".")
    if not all(part.isdigit() for part in parts) or [*map(int, parts)] < [2, 1, 325]:
        return {}
    return {"claude_code_version": version, "capabilities": ["ui_surface_v1"]}


def fatal(text: str, code: int) -> NoReturn:
    os.write(2, f"fake_claude: {text}\n".encode())
    os._exit(code)


def option(name: str) -> str | None:
    for at, word in enumerate(sys.argv):
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
        if word == name and at + 1 < len(sys.argv):
            return sys.argv[at + 1]
    return None


def mistake(scenario: Any) -> str | None:
    try:
        from .scenario import mistake_in
    except ImportError:
        # Run by its path, it was started by `FakeCli`, which has checked the scenario.
        return None
    return mistake_in(scenario)


def main() -> None:
    path = option("--scenario") or os.environ.get("BRIDLE_FAKE_SCENARIO")
    if not path:
        fatal("give it a script: --scenario FILE, or BRIDLE_FAKE_SCENARIO=FILE", 2)
    try:
        with open(path) as file:  # noqa: PTH123
            scenario = json.load(file)
    except (OSError, ValueError) as error:
        fatal(f"can't read the scenario {path}: {error}", 2)
    wrong = mistake(scenario)
    if wrong:
        fatal(f"{path}: {wrong}", 2)
    scenario = scenario if isinstance(scenario, dict) else {"steps": scenario}
    fake = FakeClaude(scenario, option("--report"))
    if "--version" in sys.argv:
        sys.stdout.write(f"{fake.version} (Claude Code)\n")
        return
    fake.report(argv=sys.argv[1:], pid=os.getpid())
    fake.play(fake.steps)
    # Like a real one: it waits for more until its stdin is closed.
    fake.pump_until(lambda: fake.eof)


if __name__ == "__main__":
    main()
