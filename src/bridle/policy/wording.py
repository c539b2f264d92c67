"""Verdicts in words."""

from __future__ import annotations

from .presets import Preset
from .rules import Rule
from .tools import Kind
from .verdicts import Allowed, Asked, Behavior, Denied, Verdict

_WHAT: dict[Kind, str] = {
    "read": "reading",
    "bookkeeping": "the agent's own notes and helpers",
    "edit": "edits inside of the folder",
    "edit elsewhere": "edits outside of the folder",
    "reading command": "commands that only read",
    "command": "commands that may do more than read",
    "web": "reaching the web",
    "mcp": "tools of MCP servers",
    "question": "questions to a person",
    "plan": "plans to be reviewed",
    "other": "tools that are not known to it",
}

OWN_PATH = "a path below /proc is another file for each process"


def allowed_by(rule: Rule) -> Allowed:
    return Allowed(rule.text, rule.source)


def asked_by(rule: Rule) -> Asked:
    return Asked(f"the rule {rule.text} says to ask", rule.text, rule.source)


def doubted(rule: Rule) -> Asked:
    reason = f"it can't be known whether {rule.text} speaks of it"
    return Asked(reason, rule.text, rule.source)


def denied(rule: Rule) -> Denied:
    return Denied(rule.text, rule.source, f"the policy denies {rule.text}")


def by_preset(behavior: Behavior, preset: Preset, kind: Kind, what: str) -> Verdict:
    """What the table says where no rule has spoken."""
    rule = f"preset {preset}"
    match behavior:
        case "allow":
            return Allowed(rule, because=f"{_WHAT[kind]} may pass")
        case "deny":
            return Denied(
                rule, because=f"the policy ({preset}) does not allow {_WHAT[kind]}: {what}"
            )
        case "ask":
            return Asked(f"no rule speaks of it, and {preset} asks about {_WHAT[kind]}", rule)


def explained(verdict: Verdict) -> str:
    """What decided, and why."""
    by = f"{verdict.rule} ({verdict.source})" if verdict.source else verdict.rule
    match verdict:
        case Allowed():
            return f"Allowed by {by}: {verdict.because}" if verdict.because else f"Allowed by {by}"
        case Denied():
            return f"Denied by {by}: {verdict.because}"
        case Asked():
            notes = "".join(f"; {note}" for note in verdict.notes)
            return f"Asked{f' by {by}' if by else ''}: {verdict.because}{notes}"
