"""What a scenario of the fake CLI may say, and what is wrong with one: in a sentence.

Owns the list of verbs. Imports the standard library alone, as the fake itself does.
"""

from __future__ import annotations

import base64
import binascii
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` is not imported at run time: it would take longer than the rest.
    from collections.abc import Callable
    from typing import Any

#: What each verb takes: the type of its argument, and what may stand beside it.
ASKING = ("id", "wait")
VERBS: dict[str, tuple[tuple[type, ...], tuple[str, ...]]] = {
    "prompt": ((bool, str), ()),
    "init": ((dict,), ()),
    "say": ((str,), ()),
    "partial": ((str,), ("chunk", "delay")),
    "tool_use": ((dict,), ()),
    "message": ((dict,), ()),
    "result": ((str, dict), ()),
    "ask": ((dict,), ASKING),
    "hook": ((dict,), ASKING),
    "mcp": ((dict,), ASKING),
    "request": ((dict,), ASKING),
    "await": ((str,), ()),
    "await_request": ((str,), ()),
    "cancel": ((str,), ()),
    "raw": ((str,), ()),
    "bytes": ((str,), ()),
    "tear": ((dict,), ("pieces", "delay")),
    "nonsense": ((int,), ()),
    "big": ((int,), ()),
    "pause": ((int, float), ()),
    "stall": ((int, float), ()),
    "stderr": ((str,), ()),
    "ignore": ((list,), ()),
    "spawn": ((dict,), ()),
    "close_stdout": ((bool,), ()),
    "die": ((str,), ()),
    "exit": ((int,), ()),
    "repeat": ((int,), ("steps",)),
}
MODIFIERS = {name for _, names in VERBS.values() for name in names}
SETTINGS: dict[str, type] = {"steps": list, "version": str, "session_id": str, "replies": dict}
UNSTOPPABLE = ("SIGKILL", "SIGSTOP")


def mistake_in(scenario: Any) -> str | None:
    """What is wrong with a scenario; None if nothing is."""
    if isinstance(scenario, dict):
        return _mistake_in_settings(scenario) or _mistake_in_steps(scenario["steps"])
    if not isinstance(scenario, list):
        return "a scenario is a list of steps, or an object with steps in it"
    return _mistake_in_steps(scenario)


def _mistake_in_settings(settings: dict[str, Any]) -> str | None:
    unknown = sorted(set(settings) - set(SETTINGS))
    if unknown or "steps" not in settings:
        what = f"unknown setting {unknown[0]!r}" if unknown else "it has no steps"
        return f"{what}; a scenario has: {', '.join(SETTINGS)}"
    for name, value in settings.items():
        if not isinstance(value, SETTINGS[name]):
            return f"{name!r} takes {SETTINGS[name].__name__}, not {value!r}"
    for subtype, reply in settings.get("replies", {}).items():
        if not isinstance(reply, dict | None):
            return f"the reply to {subtype!r} is an object, or null for never, not {reply!r}"
    return None


def _mistake_in_steps(steps: list[Any], where: str = "step") -> str | None:
    for number, step in enumerate(steps, 1):
        wrong = _mistake_in_step(step, f"{where} {number}")
        if wrong:
            return wrong
    return None


def _mistake_in_step(step: Any, where: str) -> str | None:
    if not isinstance(step, dict):
        return f'{where}: a step is an object with one verb, such as {{"say": "hi"}}, not {step!r}'
    verbs = [key for key in step if key not in MODIFIERS]
    unknown = [key for key in verbs if key not in VERBS]
    if unknown:
        known = f"{', '.join(VERBS)}; beside them: {', '.join(sorted(MODIFIERS))}"
        return f"{where}: unknown verb {unknown[0]!r}; known: {known}"
    if len(verbs) != 1:
        return f"{where}: a step has one verb, not {len(verbs)}: {', '.join(verbs) or 'none'}"
    verb = verbs[0]
    kinds, beside = VERBS[verb]
    extra = [key for key in step if key != verb and key not in beside]
    if extra:
        return f"{where}: {extra[0]!r} does not go with {verb!r}"
    if not _is_one_of(step[verb], kinds):
        expected = " or ".join(kind.__name__ for kind in kinds)
        return f"{where}: {verb!r} takes {expected}, not {step[verb]!r}"
    wrong = _mistake_in_value(verb, step[verb]) or _mistake_beside(step)
    if wrong:
        return f"{where}: {wrong}"
    if verb == "repeat":
        if not isinstance(step.get("steps"), list):
            return f"{where}: 'repeat' needs \"steps\": a list of steps to play again"
        return _mistake_in_steps(step["steps"], f"{where}, step")
    return None


def _is_one_of(value: Any, kinds: tuple[type, ...]) -> bool:
    return isinstance(value, kinds) and not (isinstance(value, bool) and bool not in kinds)


def _mistake_in_value(verb: str, value: Any) -> str | None:
    check = _VALUES.get(verb)
    if check is None:
        return _not_negative(verb, value)
    return check(value)


def _not_negative(verb: str, value: Any) -> str | None:
    if isinstance(value, int | float) and value < 0:
        return f"{verb!r} takes a number of 0 or more, not {value!r}"
    if isinstance(value, str) and any(0xD800 <= ord(letter) <= 0xDFFF for letter in value):
        return f"{verb!r} has half a character in it, which can't be written as UTF-8"
    return None


def _is_signal(name: Any) -> bool:
    return isinstance(name, str) and name in signal.Signals.__members__


def _wrong_signal(name: Any) -> str | None:
    return None if _is_signal(name) else f"{name!r} is not a signal's name, such as SIGTERM"


def _wrong_ignore(names: list[Any]) -> str | None:
    for name in names:
        if name in UNSTOPPABLE:
            return f"{name} can't be ignored"
        if not _is_signal(name):
            return _wrong_signal(name)
    return None


def _wrong_base64(text: str) -> str | None:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        return f"'bytes' takes base64: {error}"
    return None


def _wrong_spawn(how: dict[str, Any]) -> str | None:
    kinds: dict[str, tuple[type, ...]] = {"seconds": (int, float), "new_session": (bool,)}
    for key, value in how.items():
        if key not in kinds or not _is_one_of(value, kinds[key]):
            return f"'spawn' takes seconds and new_session, not {key!r}: {value!r}"
    return None


_VALUES: dict[str, Callable[[Any], str | None]] = {
    "prompt": lambda v: "'prompt' takes true, or words that it must hold" if v is False else None,
    "close_stdout": lambda v: None if v else "'close_stdout' takes true",
    "ask": lambda v: None if isinstance(v.get("tool_name"), str) else "'ask' needs a tool_name",
    "exit": lambda v: None if 0 <= v <= 255 else f"'exit' takes 0 to 255, not {v}",
    "die": _wrong_signal,
    "ignore": _wrong_ignore,
    "bytes": _wrong_base64,
    "spawn": _wrong_spawn,
}


def _mistake_beside(step: dict[str, Any]) -> str | None:
    for name, least in (("pieces", 1), ("chunk", 1), ("delay", 0)):
        value = step.get(name, least)
        if not _is_one_of(value, (int, float)) or value < least:
            return f"{name!r} takes a number of {least} or more, not {value!r}"
    if not isinstance(step.get("wait", True), bool):
        return f"'wait' takes true or false, not {step['wait']!r}"
    if not isinstance(step.get("id", ""), str):
        return f"'id' takes a string, not {step['id']!r}"
    return None
