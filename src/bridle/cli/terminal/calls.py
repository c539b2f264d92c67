"""Tool calls in a transcript: the one line that matters of each, what it changes, how it ended.

Owns which fields of which tool are shown; whatever has another form is shown as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from rich.text import Text

from ...approvals.compared import compared
from ...views import entries as e
from .look import Lines, line
from .words import count, first_lines, near, on_one_line, printed, seen

MOST_COMMAND = 6
MOST_DIFF = 24
MOST_OUTPUT = 8
MOST_ITEMS = 12
#: Tools of which nobody wants to read the result: how long it is will do.
_COUNTED = {"Read": "line", "Glob": "file", "NotebookRead": "line", "LS": "line"}
#: Tools whose result says nothing that the call did not, unless it is an error.
_SILENT = frozenset(("Edit", "Write", "MultiEdit", "NotebookEdit", "TodoWrite"))
SUBAGENTS = frozenset(("Task", "Agent"))

_Given = dict[str, Any]


def headline(name: str, given: _Given, folder: str) -> list[Text]:
    """The tool and what it is about: for a command all of it, up to a point."""
    about = _ABOUT.get(name)
    try:
        words = about(given, folder) if about else _fields(given)
    except (TypeError, ValueError, AttributeError, LookupError):
        words = _fields(given)
    shown, more = first_lines(words, MOST_COMMAND)
    first, *rest = shown or [""]
    called = (on_one_line(_called(name), 80), "bold")
    style = "cyan" if name == "Bash" else ""
    found = [line(called, "  " if first else "", (first, style))]
    found += [line(" " * 2, (text, style)) for text in rest]
    return [*found, *_more(more)]


def brief(name: str, given: _Given, folder: str) -> str:
    """The same in a few words, for where there is little room."""
    return " ".join(on_one_line(headline(name, given, folder)[0].plain, 120).split())


def changes(name: str, given: _Given) -> list[Text]:
    """What a call would make of a file, or of a list: shown below its headline."""
    try:
        match name:
            case "Edit":
                found = _diff(_text(given["old_string"]), _text(given["new_string"]))
            case "MultiEdit":
                found = [
                    text
                    for edit in given["edits"]
                    for text in _diff(_text(edit["old_string"]), _text(edit["new_string"]))
                ]
            case "Write":
                found = [_added(text) for text in seen(_text(given["content"])).splitlines()]
            case "TodoWrite":
                found = [_item(item) for item in given["todos"]]
                return [*found[:MOST_ITEMS], *_more(len(found) - MOST_ITEMS)]
            case _:
                return []
    except (TypeError, ValueError, AttributeError, LookupError):
        return []
    return [*found[:MOST_DIFF], *_more(len(found) - MOST_DIFF)]


def ending(name: str, end: e.CallEnd) -> Lines | None:
    """How a call ended; None where that goes without saying."""
    text = _without_code(printed(end.output.text), end)
    match end.outcome:
        case "ok" if name in _COUNTED and text:
            number = len(text.rstrip("\n").split("\n"))
            found = [line((count(number, _COUNTED[name]), "dim"))]
        case "ok" if name in _SILENT:
            found = []
        case "ok":
            found = _output(text, end, _code(end), "dim")
        case "denied":
            found = _output(text, end, [line(("denied", "red"))], "dim", most=3)
        case "cancelled":
            found = [line(("cancelled", "yellow"))]
        case "error":
            code = _code(end) or [line(("error", "red"))]
            found = _output(text, end, code, "")
        case _:
            found = [line(("its result is not here: see the events", "dim"))]
    found += [line((_picture(picture), "dim")) for picture in end.pictures]
    return Lines(found, is_cut=True) if found else None


def _code(end: e.CallEnd) -> list[Text]:
    if not end.exit_code:
        return []
    return [line((f"exit {end.exit_code}", "red"))]


def _without_code(text: str, end: e.CallEnd) -> str:
    """What the CLI writes in place of an output, or before it."""
    if text == "(Bash completed with no output)":
        return ""
    return text.removeprefix(f"Exit code {end.exit_code}").lstrip("\n") if end.exit_code else text


def _output(
    text: str, end: e.CallEnd, head: list[Text], style: str, most: int = MOST_OUTPUT
) -> list[Text]:
    shown, more = first_lines(text, most)
    if not shown and not head and not end.pictures:
        return [line(("no output", "dim"))]
    cut = [line((f"… {end.output.size} characters in all", "dim"))] if end.output.is_cut else []
    return [*head, *(line((one, style)) for one in shown), *(cut or _more(more))]


def _picture(picture: e.Picture) -> str:
    size = f", {picture.size} bytes" if picture.size else ""
    return f"[{on_one_line(picture.media_type or picture.url or 'image', 100)}{size}]"


def _more(number: int) -> list[Text]:
    return [line((f"… {count(number, 'more line')}", "dim"))] if number > 0 else []


# --- what each tool is about


def _called(name: str) -> str:
    """`mcp__server__tool` is the tool of a server."""
    if name.startswith("mcp__") and name.count("__") >= 2:
        _, server, tool = name.split("__", 2)
        return f"{server}: {tool}"
    return name


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return value


def _read(given: _Given, folder: str) -> str:
    path = near(_text(given["file_path"]), folder)
    first, number = given.get("offset"), given.get("limit")
    if isinstance(first, int) and isinstance(number, int):
        return seen(f"{path}:{first}-{first + number - 1}")
    if isinstance(first, int):
        return seen(f"{path}:{first}-")
    return seen(f"{path}:1-{number}" if isinstance(number, int) else path)


def _path(given: _Given, folder: str) -> str:
    return on_one_line(near(_text(given.get("file_path") or given["notebook_path"]), folder))


def _search(given: _Given, folder: str) -> str:
    where = given.get("path") or given.get("glob")
    inside = f"  in {on_one_line(near(_text(where), folder))}" if where else ""
    return f"{on_one_line(_text(given['pattern']))}{inside}"


def _field(name: str) -> Callable[[_Given, str], str]:
    def about(given: _Given, _: str) -> str:
        return on_one_line(_text(given[name]))

    return about


def _delegated(given: _Given, _: str) -> str:
    kind = given.get("subagent_type")
    who = f" ({on_one_line(_text(kind), 60)})" if kind else ""
    return f"{on_one_line(_text(given.get('description') or given['prompt']), 200)}{who}"


def _questions(given: _Given, _: str) -> str:
    return on_one_line(" ".join(_text(question["question"]) for question in given["questions"]))


_ABOUT: dict[str, Callable[[_Given, str], str]] = {
    "Bash": lambda given, _: seen(_text(given["command"])),
    "BashOutput": _field("bash_id"),
    "KillShell": _field("shell_id"),
    "Read": _read,
    "Edit": _path,
    "MultiEdit": _path,
    "Write": _path,
    "NotebookEdit": _path,
    "Glob": _search,
    "Grep": _search,
    "WebFetch": _field("url"),
    "WebSearch": _field("query"),
    "Task": _delegated,
    "Agent": _delegated,
    "Skill": _field("skill"),
    "AskUserQuestion": _questions,
    "TodoWrite": lambda given, _: count(len(given["todos"]), "item"),
}


def _fields(given: _Given) -> str:
    """Of a tool that is not known: what it was given, on one line."""
    parts = []
    for key, value in given.items():
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        parts.append(f"{on_one_line(str(key), 40)}: {on_one_line(text, 120)}")
    return on_one_line(", ".join(parts))


def _item(item: _Given) -> Text:
    words = on_one_line(_text(item["content"]), 200)
    match item.get("status"):
        case "completed":
            return line(("☒ ", "green"), (words, "dim"))
        case "in_progress":
            return line(("☐ ", "yellow"), (words, "bold"))
    return line(("☐ ", "dim"), words)


# --- diffs


def _diff(old: str, new: str) -> list[Text]:
    return list(_diff_lines(seen(old).splitlines(), seen(new).splitlines()))


def _diff_lines(before: list[str], after: list[str]) -> Iterator[Text]:
    """Without heads and numbers: where in the file it is, the CLI does not say."""
    for number, text in enumerate(compared(before, after, around=2)):
        if number < 2:
            continue
        match text[:1]:
            case "+":
                yield _added(text[1:])
            case "-":
                yield line((f"- {text[1:]}", "red"))
            case "@":
                if number > 2:
                    yield line(("⋯", "dim"))
            case _:
                yield line((f"  {text[1:]}", "dim"))


def _added(text: str) -> Text:
    return line((f"+ {text}", "green"))
