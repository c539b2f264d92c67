"""The agents that a killed controller looks after: what they say and ask, turn by turn.

Every call, prompt and request has a name with its agent and turn in it, so that each can be
accounted for: `accounts` does that.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from bridle.session.hooks import RAN_ID
from bridle.testing import FakeCli

OLD, NEW = "2.0.75", "2.1.325"
#: So large that an event has only the head of it.
LARGE = 300_000

Step = dict[str, Any]


class Planned(Struct):
    """One agent, and how many turns it has to go through."""

    name: str
    command: list[str]
    report: str
    turns: int
    #: This prompt is large.
    large: int = 0


class Plan(Struct):
    agents: list[Planned]


def write_plan(folder: Path, agents: list[Planned]) -> None:
    (folder / "work").mkdir(parents=True, exist_ok=True)
    (folder / "plan.json").write_bytes(msgspec.json.encode(Plan(agents)))


def read_plan(folder: Path) -> Plan:
    return msgspec.json.decode((folder / "plan.json").read_bytes(), type=Plan)


def planned(folder: Path, name: str, turns: int, version: str = NEW, large: int = 0) -> Planned:
    """An agent that does everything an agent does, in every turn."""
    steps = [step for turn in range(1, turns + 1) for step in turn_of(name, turn, version)]
    cli = FakeCli(steps, folder / "agents", name, version=version)
    report = folder / "agents" / f"{name}.report.ndjson"
    return Planned(name, cli.command, str(report), turns, large)


def as_program(folder: Path, agent: Planned) -> Planned:
    """The same, as a program that can be asked for its version."""
    path = folder / "agents" / agent.name
    path.write_text(f'#!/bin/sh\nexec {shlex.join(agent.command)} "$@"\n')
    path.chmod(0o700)
    agent.command = [str(path)]
    return agent


def prompt_of(agent: Planned, number: int) -> str:
    return f"prompt #{number}#" + "." * (LARGE if number == agent.large else 0)


# --- the steps of a turn


def turn_of(name: str, turn: int, version: str = NEW) -> list[Step]:
    key = f"{name}-{turn}"
    return [
        {"prompt": f"#{turn}#"},
        {"init": {}},
        {"repeat": 3, "steps": [{"say": "at work"}, {"pause": 0.01}]},
        {"partial": "bit by bit", "chunk": 3},
        *judged(key),
        *asked(key),
        *(asked_again(key) if version == NEW else ()),
        *withdrawn(key, version),
        done(key),
        called(key, name, turn),
        {"repeat": 2, "steps": [{"say": "at work"}]},
        {"result": "done"},
    ]


def hooked(id_: str, tool: str, input_: Step, **beside: object) -> Step:
    hook = {"tool_name": tool, "tool_input": input_, "tool_use_id": id_}
    return {"hook": hook, "id": f"hook-{id_}", **beside}


def question(id_: str, tool: str, input_: Step, **beside: object) -> Step:
    return {
        "ask": {"tool_name": tool, "input": input_, "tool_use_id": id_},
        "id": f"ask-{id_}",
        **beside,
    }


def ran(id_: str, *, is_error: bool = False) -> Step:
    result = {"type": "tool_result", "tool_use_id": id_, "content": "", "is_error": is_error}
    return {"message": {"type": "user", "message": {"role": "user", "content": [result]}}}


def judged(key: str) -> list[Step]:
    """What rules decide: one that is allowed, two that are denied."""
    page = {"url": "https://example.org/", "prompt": "read"}
    return [
        hooked(f"{key}-read", "Read", {"file_path": "notes.txt"}),
        ran(f"{key}-read"),
        hooked(f"{key}-web", "WebFetch", page),
        ran(f"{key}-web", is_error=True),
        question(f"{key}-web-again", "WebFetch", page),
    ]


def asked(key: str) -> list[Step]:
    """Two approvals at a time: somebody says yes to one, and no to the other."""
    yes, no = {"command": f"touch {key}"}, {"command": f"rm {key}"}
    return [
        hooked(f"{key}-yes", "Bash", yes, wait=False),
        hooked(f"{key}-no", "Bash", no, wait=False),
        {"say": "at work, and waiting"},
        {"await": f"hook-{key}-yes"},
        used(f"{key}-yes", yes),
        ran(f"{key}-yes"),
        {"await": f"hook-{key}-no"},
        ran(f"{key}-no", is_error=True),
    ]


def asked_again(key: str) -> list[Step]:
    """The CLI itself asks about what was allowed, and about what no hook has seen."""
    yes = {"command": f"touch {key}"}
    return [
        hooked(f"{key}-twice-yes", "Bash", yes),
        question(f"{key}-twice-yes", "Bash", yes),
        question(f"{key}-only-yes", "Bash", yes, wait=False),
        question(f"{key}-only-no", "Bash", {"command": f"rm {key}"}, wait=False),
        {"await": f"ask-{key}-only-yes"},
        {"await": f"ask-{key}-only-no"},
    ]


def used(id_: str, input_: Step) -> Step:
    """What a tool has run with."""
    told = {"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_input": input_}
    told |= {"tool_response": "", "tool_use_id": id_, "callback_id": RAN_ID}
    return {"hook": told, "id": f"used-{id_}"}


def withdrawn(key: str, version: str = NEW) -> list[Step]:
    """Asked and taken back; an answer may be on its way."""
    ask = hooked if version == OLD else question
    kind = "hook" if version == OLD else "ask"
    return [
        ask(f"{key}-back", "Bash", {"command": f"touch {key}-back"}, wait=False),
        {"pause": 0.003},
        {"cancel": f"{kind}-{key}-back"},
        ran(f"{key}-back", is_error=True),
    ]


def done(key: str) -> Step:
    """A hook of the user's."""
    told = {"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_input": {}}
    return {
        "hook": {**told, "callback_id": "bridle-PostToolUse-1", "tool_use_id": f"{key}-yes"},
        "id": f"done-{key}",
    }


def called(key: str, name: str, turn: int) -> Step:
    """A tool that runs in the controller."""
    params = {"name": "note", "arguments": {"agent": name, "number": turn}}
    message = {"jsonrpc": "2.0", "id": turn, "method": "tools/call", "params": params}
    return {"mcp": {"server_name": "tools", "message": message}, "id": f"call-{key}"}
