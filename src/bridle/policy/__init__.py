"""Policies: what an agent may do, judged in microseconds and without any I/O.

policy = Policy("ask", allow=["Bash(npm test:*)"], deny=["Read(./secrets/**)"])
judge = policy.on(Ground(folder="/home/me/app"))
judge.explain(Call("Bash", {"command": "npm test && rm -rf build"}))
"""

from __future__ import annotations

from .delegable import Delegable, delegable
from .delegation import Delegation, Granted, Refused
from .files import parse_policy, parse_settings
from .force import InForce
from .judge import Judge
from .policy import Policy
from .presets import PRESETS, Preset
from .rules import Rule, parse_rule
from .suggest import suggest
from .trial import Past, Trial, try_policy
from .verdicts import Allowed, Asked, Call, Denied, Ground, Verdict

__all__ = [
    "PRESETS",
    "Allowed",
    "Asked",
    "Call",
    "Delegable",
    "Delegation",
    "Denied",
    "Granted",
    "Ground",
    "InForce",
    "Judge",
    "Past",
    "Policy",
    "Preset",
    "Refused",
    "Rule",
    "Trial",
    "Verdict",
    "delegable",
    "parse_policy",
    "parse_rule",
    "parse_settings",
    "suggest",
    "try_policy",
]
