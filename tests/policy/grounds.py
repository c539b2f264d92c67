"""The agent that these tests judge, its policies by name, and a verdict in one word."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from bridle.policy import Allowed, Asked, Call, Denied, Ground, Judge, Policy, Verdict

HOME = "/home/me"
FOLDER = "/home/me/app"
PORT = "8123"
SOCKET = "/run/user/1000/bridle.sock"
GROUND = Ground(
    folder=FOLDER,
    home=HOME,
    bridle_home="/home/me/.bridle",
    addresses=(f"127.0.0.1:{PORT}", SOCKET),
    guarded=("/home/me/app/policies/mine.toml",),
)

_ALLOW = [
    "Bash(npm run test:*)",
    "Bash(npm run lint)",
    "Bash(git diff *)",
    "Bash(git status)",
    "Bash(git log:*)",
    "Bash(git add:*)",
    "Bash(git commit:*)",
    "Bash(ls:*)",
    "Bash(grep:*)",
    "Bash(cat:*)",
    "Bash(find:*)",
    "Bash(head:*)",
    "Bash(wc:*)",
    "Bash(sort:*)",
    "Bash(echo:*)",
    "Bash(printf:*)",
    "Bash(tee:*)",
    "Bash(mkdir -p:*)",
    "Bash(python -m pytest:*)",
    "Bash(make)",
    "Edit(/src/**)",
]
_DENY = ["Bash(rm:*)", "Bash(curl:*)"]
_HIDDEN = ["Read(./secrets/**)", "Read(~/.ssh/**)"]
_ASK = ["Bash(git push:*)"]

POLICIES = {
    "list": Policy("ask", allow=_ALLOW, deny=[*_DENY, *_HIDDEN], ask=_ASK),
    # The same without hidden files: words that are not known matter less.
    "open": Policy("ask", allow=_ALLOW, deny=_DENY, ask=_ASK),
    "bash": Policy("ask", allow=["Bash"], deny=["Bash(rm:*)", *_HIDDEN], ask=_ASK),
    "whole": Policy("ask", allow=["Bash"]),
    "spelt": Policy(
        "ask",
        allow=["Bash"],
        deny=["Bash(git push:*)", "Bash(npm publish:*)", "Bash(docker compose up:*)"],
    ),
    "ask": Policy("ask"),
    "read-only": Policy("read-only"),
    "edits": Policy("edits"),
    "plan": Policy("plan", allow=["Bash(npm run test:*)", "Bash(ls:*)"]),
    "autonomous": Policy("autonomous", deny=["Bash(rm:*)", *_HIDDEN], ask=_ASK),
}
JUDGES = {name: policy.on(GROUND) for name, policy in POLICIES.items()}


def told(verdict: Verdict) -> str:
    """allow, ask or deny; guard where a person alone may say."""
    match verdict:
        case Allowed():
            return "allow"
        case Denied():
            return "deny"
        case Asked():
            return "guard" if verdict.guard else "ask"


def bash(command: object, **more: Any) -> Call:
    return Call("Bash", {"command": command, **more})


def judged(policy: str, command: str) -> str:
    return told(JUDGES[policy].judge(bash(command)))


def real_ground(folder: Path, **more: Any) -> Ground:
    """A folder that exists, with links that are followed."""
    given = {"home": str(folder.parent), "resolve": os.path.realpath, **more}
    return Ground(folder=str(folder), **given)


def judge(policy: Policy, ground: Ground = GROUND) -> Judge:
    return policy.on(ground)
