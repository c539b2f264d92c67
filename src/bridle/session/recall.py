"""What an answer said that an earlier controller wrote: read back from its line."""

from __future__ import annotations

import msgspec
from msgspec import Struct, UnsetType

from ..protocol.hook_outputs import HookOutput, PreToolUseOutput
from ..protocol.permissions import Allow, Decision, Deny

UNCLEAR = "it was refused"


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


def hook_decision(line: bytes) -> tuple[Decision | None, bool]:
    """What the gate's hook answered about a call, and whether the CLI was told to ask as well.

    None where the wait was to be in that question: earlier versions of Bridle did so. What is
    unclear was a no.
    """
    try:
        answer = msgspec.json.decode(line, type=_HookLine).response.response
    except msgspec.DecodeError:
        return Deny(UNCLEAR), False
    given = answer.hook_specific_output
    if not isinstance(given, PreToolUseOutput):
        return Deny(UNCLEAR), False
    has_input = not isinstance(given.updated_input, UnsetType)
    match given.permission_decision:
        case "allow":
            return Allow(given.updated_input), False
        case "ask":
            return (Allow(given.updated_input) if has_input else None), True
    reason = given.permission_decision_reason
    return Deny(UNCLEAR if isinstance(reason, UnsetType) else reason), False


def question_decision(line: bytes) -> Decision:
    """What was answered to the CLI's own question. What is unclear was a no."""
    try:
        return msgspec.json.decode(line, type=_DecisionLine).response.response
    except msgspec.DecodeError:
        return Deny(UNCLEAR)


def is_no(line: bytes) -> bool:
    """Whether an answer refuses: a question, or a call in a hook."""
    try:
        msgspec.json.decode(line, type=_DenyLine)
    except msgspec.DecodeError:
        return isinstance(hook_decision(line)[0], Deny) and _is_hook_answer(line)
    return True


def _is_hook_answer(line: bytes) -> bool:
    try:
        answer = msgspec.json.decode(line, type=_HookLine).response.response
    except msgspec.DecodeError:
        return False
    return isinstance(answer.hook_specific_output, PreToolUseOutput)
