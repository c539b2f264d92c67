"""An entry of the transcript as blocks of output.

Owns what is shown of each sort of entry, and what is not worth a line; `printer` says when. All
that others wrote passes `words` on its way into a block.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from msgspec import Struct
from rich.text import Text

from ...views import entries as e
from . import calls
from .look import Block, Lines, Mark, Prose, line, lines
from .words import count, duration, first_lines, money, on_one_line, printed, seen

MOST_THINKING = 3
MOST_PROMPT = 40
MOST_WORDS = 12


class Look(Struct, frozen=True, kw_only=True):
    """For whom is shown. `folder` is the agent's; with `is_verbose` also what is seldom read."""

    folder: str = ""
    is_verbose: bool = False
    #: Who sits at this terminal.
    me: str = ""
    #: Whether questions are answered here, by keys or by nobody: then they need not be told.
    is_asked_here: bool = False
    #: Whether it is said of each turn how it ended.
    has_turn_ends: bool = True
    #: Whether what was said to the agent is shown: whoever keeps its answer in a file has said it.
    has_prompts: bool = True


def shown(entry: e.TranscriptEntry, look: Look) -> list[Block]:
    """All of an entry, as it is now."""
    show = _SHOWN[type(entry)]
    found: list[Block] = show(entry, look)
    return found


# --- what is said


def _prompt(entry: e.Prompt, look: Look) -> list[Block]:
    if not look.has_prompts:
        return []
    text, more = first_lines(seen(entry.text.text), MOST_PROMPT)
    found = [line((one, "bold")) for one in text or [""]]
    found += [line((f"[{on_one_line(one.media_type, 60)}]", "dim")) for one in entry.pictures]
    return [Block(mark="prompt", body=Lines([*found, *_more(more)]))]


def _text(entry: e.Text, _: Look) -> list[Block]:
    source = seen(entry.text.text).strip("\n")
    if not source.strip():
        return []
    if entry.speaker != "agent":
        return [_note("note", source, "dim")]
    found = [Block(mark="text", body=Prose(source))]
    if entry.text.is_cut:
        words = f"… {entry.text.size} characters in all"
        found.append(Block(mark="none", body=lines(line((words, "dim"))), is_under=True))
    return found


def _thinking(entry: e.Thinking, look: Look) -> list[Block]:
    text = seen(entry.text.text).strip()
    if not text:
        return []
    most = 1_000 if look.is_verbose else MOST_THINKING
    first, more = first_lines(text, most)
    found = [line((one, "dim italic")) for one in first]
    return [Block(mark="thinking", body=Lines([*found, *_more(more)]))]


def _command_output(entry: e.CommandOutput, _: Look) -> list[Block]:
    return [Block(mark="note", body=Prose(printed(entry.text.text).strip("\n")))]


def _image(entry: e.Image, _: Look) -> list[Block]:
    name = on_one_line(entry.picture.media_type or entry.picture.url or "image", 100)
    return [_note("note", f"[{name}]", "dim")]


# --- what is done


def call(entry: e.ToolCall, look: Look) -> list[Block]:
    """What a call wants to do."""
    body = calls.headline(entry.name, entry.input, look.folder)
    return [Block(mark="call", body=Lines(body), style=_colour(entry.end))]


def changes(name: str, given: dict[str, Any]) -> list[Block]:
    """What it makes of a file, or of a list."""
    changed = calls.changes(name, given)
    return [Block(mark="none", body=Lines(changed), is_under=True)] if changed else []


def result(entry: e.ToolCall | e.ToolResult, look: Look, *, is_apart: bool) -> list[Block]:
    """How it ended. `is_apart`: its call is not right above, so that it must be named."""
    name = entry.name if isinstance(entry, e.ToolCall) else ""
    body = calls.ending(name, entry.end) if entry.end else None
    if not is_apart:
        return [Block(mark="result", body=body, is_under=True)] if body else []
    named = calls.brief(name, entry.input, look.folder) if isinstance(entry, e.ToolCall) else ""
    head = line((named or "the result of a call that is not here", "dim"))
    ended = body.lines if body else []
    is_ok = entry.end is not None and entry.end.outcome == "ok"
    return [Block(mark="yes" if is_ok else "no", body=Lines([head, *ended], is_cut=True))]


def _whole_call(entry: e.ToolCall, look: Look) -> list[Block]:
    changed = changes(entry.name, entry.input)
    return [*call(entry, look), *changed, *result(entry, look, is_apart=False)]


def _lone_result(entry: e.ToolResult, look: Look) -> list[Block]:
    return result(entry, look, is_apart=True)


def _colour(end: e.CallEnd | None) -> str:
    return {"ok": "green", None: "green"}.get(end.outcome if end else None, "red")


# --- what is asked


def plan(entry: e.Plan) -> list[Block]:
    text = seen(entry.plan.text).strip("\n") or "(the CLI did not tell it)"
    head = Block(mark="ask", body=lines(line(("Plan", "bold"))))
    return [head, Block(mark="none", body=Prose(text), is_under=True)]


def _whole_plan(entry: e.Plan, look: Look) -> list[Block]:
    return [*plan(entry), *(decided(entry.decision, look) if entry.decision else [])]


def asked(entry: e.Approval | e.Plan, look: Look) -> list[Block]:
    """That somebody must decide: where nobody is asked at this terminal."""
    decision = entry.decision
    if decision is None or decision.status != "pending":
        return []
    reason = on_one_line(entry.reason, 160) if isinstance(entry, e.Approval) else ""
    how = f"bridle approve {on_one_line(decision.id, 40)}"
    words = line((f"{about(entry, look)} waits to be allowed", "yellow"))
    because = line((reason, "dim"))
    body = [words, *([because] if reason else []), line((how, "dim"))]
    return [Block(mark="ask", body=Lines(body), is_under=True)]


def about(entry: e.Approval | e.Plan, look: Look) -> str:
    """What is asked, in a few words."""
    if isinstance(entry, e.Plan):
        return "the plan"
    return calls.brief(entry.tool, entry.input, look.folder)


def _approval(entry: e.Approval, look: Look) -> list[Block]:
    return asked(entry, look) or decided(entry.decision, look, about=entry.about)


def decided(
    decision: e.Decision, look: Look, named: str = "", *, about: str = "tool"
) -> list[Block]:
    """What became of what was asked; `named`, where it does not stand right above."""
    if decision.status == "pending":
        return []
    words = f": {on_one_line(decision.words, 300)}" if decision.words else ""
    mark, style = _DECIDED[decision.status]
    what = f"{named} " if named else ""
    is_answer = about == "question" and decision.status == "allowed"
    told = "answered" if is_answer else decision.status.replace("_", " ")
    told += _by(decision.by, look)
    text = line(what, (told, style), (words, "dim"))
    return [Block(mark=mark, body=lines(text), is_under=True)]


def _by(who: str, look: Look) -> str:
    if who and who == look.me:
        return " by you"
    if not who or who == "nobody":  # the words say it
        return ""
    return f" by {_session(who)}" if _ID.fullmatch(who) else f" by {on_one_line(who, 60)}"


def _session(id_: str) -> str:
    """An agent's, as it is listed."""
    return f"session {id_[:8]}"


#: Agents decide in the name of their session; people have other names.
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


_DECIDED: dict[str, tuple[Mark, str]] = {
    "allowed": ("yes", "green"),
    "denied": ("no", "red"),
    "timed_out": ("no", "red"),
    "cancelled": ("no", "yellow"),
}

# --- what goes wrong, and what is otherwise now


def _error(entry: e.Error, _: Look) -> list[Block]:
    text, more = first_lines(printed(entry.words.text), MOST_WORDS)
    words = [line((one, "red")) for one in text or ["something went wrong"]]
    return [Block(mark="no", body=Lines([*words, *_more(more)]))]


def _stderr(entry: e.Stderr, look: Look) -> list[Block]:
    if not look.is_verbose:
        return []
    text, more = first_lines(printed(entry.text.text), MOST_WORDS)
    words = [line((one, "dim")) for one in text]
    return [Block(mark="warn", body=Lines([line(("stderr", "dim")), *words, *_more(more)]))]


def _strange(entry: e.Strange, look: Look) -> list[Block]:
    if not look.is_verbose:
        return []
    words = f"{entry.type}: {entry.reason} {entry.raw.text[:200]}"
    return [_note("warn", on_one_line(words), "dim")]


def _large(entry: e.Large, _: Look) -> list[Block]:
    words = f"{on_one_line(entry.type or entry.event, 60)}: too large to be shown here"
    return [_note("note", f"{words}; the log has it as event {entry.seq}", "dim")]


def _turn_end(entry: e.TurnEnd, look: Look) -> list[Block]:
    if not look.has_turn_ends:
        return []
    facts = [duration(entry.seconds), *([money(entry.cost_usd)] if entry.cost_usd else [])]
    if entry.denials:
        facts.append(count(entry.denials, "denied call"))
    mark, words, style = _ENDS[entry.outcome]
    if entry.outcome == "failed" and entry.subtype not in ("success", "error"):
        words = f"{words} ({on_one_line(entry.subtype, 60)})"
    text = line((words, style), (f" · {' · '.join(facts)}", "dim"))
    return [Block(mark=mark, body=lines(text))]


_ENDS: dict[str, tuple[Mark, str, str]] = {
    "done": ("yes", "done", "green"),
    "failed": ("no", "failed", "red"),
    "interrupted": ("warn", "interrupted", "yellow"),
}


def _status(entry: e.Status, look: Look) -> list[Block]:
    value, words = on_one_line(entry.value, 120), on_one_line(entry.words, 400)
    is_quiet = entry.topic in _QUIET or (entry.topic == "state" and value not in _LOUD_STATES)
    if is_quiet and not look.is_verbose:
        return []
    style = "yellow" if entry.topic in _LOUD or value in _LOUD_STATES else "dim"
    topic = "" if entry.topic in ("notice", "state") else f"{entry.topic}: "
    if entry.topic == "approval":
        topic, value = "now put to ", _session(value) if _ID.fullmatch(value) else value
    said = f"{topic}{value}{f', {words}' if words else ''}"
    return [_note("warn" if style == "yellow" else "note", said, style)]


#: What goes without saying.
_QUIET = frozenset(("launch", "hook", "policy", "mode", "model", "parent", "conversation"))
_LOUD = frozenset(("limit", "pause", "retry", "budget", "stop"))
_LOUD_STATES = frozenset(("rate limited", "needs login", "paused", "failed", "lost", "stopped"))


def _note(mark: Mark, words: str, style: str) -> Block:
    return Block(mark=mark, body=Lines([line((one, style)) for one in words.split("\n")]))


def _more(number: int) -> list[Text]:
    return [line((f"… {count(number, 'more line')}", "dim"))] if number > 0 else []


_SHOWN: dict[type, Callable[[Any, Look], list[Block]]] = {
    e.Prompt: _prompt,
    e.Text: _text,
    e.Thinking: _thinking,
    e.ToolCall: _whole_call,
    e.ToolResult: _lone_result,
    e.Plan: _whole_plan,
    e.Approval: _approval,
    e.Image: _image,
    e.CommandOutput: _command_output,
    e.Stderr: _stderr,
    e.Error: _error,
    e.Status: _status,
    e.TurnEnd: _turn_end,
    e.Strange: _strange,
    e.Large: _large,
}
