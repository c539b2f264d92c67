"""What an answer said that an earlier controller wrote: read back from its line."""

from __future__ import annotations

import msgspec
from msgspec import Struct, UnsetType

from ..protocol.hook_outputs import HookOutput, PreToolUseOutput
from ..protocol.permissions import Decision, Deny


class _HookAnswer(Struct):
    response: HookOutput


class _HookLine(Struct):
    response: _HookAnswer


class _DecisionAnswer(Struct):
    response: Decision


class _DecisionLine(Struct):
    response: _DecisionAnswer


class _DenyAnswer(Struct):
    response: Deny


class _DenyLine(Struct):
    response: _DenyAnswer


def hook_decision(line: bytes) -> tuple[str, str]:
    """What a hook of ours decided about a call, and why. What is unclear was a no."""
    try:
        answer = msgspec.json.decode(line, type=_HookLine).response.response
    except msgspec.DecodeError:
        return "deny", ""
    given = answer.hook_specific_output
    if not isinstance(given, PreToolUseOutput) or isinstance(given.permission_decision, UnsetType):
        return "deny", ""
    reason = given.permission_decision_reason
    return given.permission_decision, "" if isinstance(reason, UnsetType) else reason


def question_decision(line: bytes) -> Decision:
    """What was answered to the CLI's own question. What is unclear was a no."""
    try:
        return msgspec.json.decode(line, type=_DecisionLine).response.response
    except msgspec.DecodeError:
        return Deny("it was refused")


def is_no(line: bytes) -> bool:
    """Whether an answer refuses: a question, or a call in a hook."""
    try:
        msgspec.json.decode(line, type=_DenyLine)
    except msgspec.DecodeError:
        return hook_decision(line)[0] == "deny" and _is_hook_answer(line)
    return True


def _is_hook_answer(line: bytes) -> bool:
    try:
        answer = msgspec.json.decode(line, type=_HookLine).response.response
    except msgspec.DecodeError:
        return False
    return isinstance(answer.hook_specific_output, PreToolUseOutput)
