"""Policies, as the API gives and takes them."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from msgspec import Meta, Struct

from ...approvals.model import Agent, Person
from ...approvals.remember import RememberedRule
from ...policy.policy import RuleText
from ...policy.presets import Preset
from ...policy.verdicts import Behavior, Verdict


class PresetView(Struct, frozen=True, kw_only=True, tag="preset"):
    """What happens to a call of which no rule speaks, by the kind of the call."""

    name: str
    digest: str
    table: dict[str, Behavior]


class PolicyView(Struct, frozen=True, kw_only=True, tag="stored"):
    """A policy that is kept under a name: its text, and what that says."""

    name: str
    digest: str
    revision: int
    text: str
    preset: Preset
    has_guard: bool
    rules: tuple[RuleText, ...]
    by: Person
    at: float


AnyPolicy: TypeAlias = PresetView | PolicyView


class PolicyText(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The text of a policy (TOML). With a `revision` it is kept only if the one that is there has
    that; 0 is none."""

    text: str
    revision: Annotated[int, Meta(ge=0, le=2**53)] | None = None


class PolicyToCheck(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    text: str


class Readable(Struct, frozen=True, kw_only=True, tag="valid"):
    """It can be used."""

    digest: str
    preset: Preset
    has_guard: bool
    rules: tuple[RuleText, ...]


class Unreadable(Struct, frozen=True, kw_only=True, tag="invalid"):
    """It can't be, because of this line."""

    line: int | None
    reason: str


Checked: TypeAlias = Readable | Unreadable


class TriedCall(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A call that an agent might make. `expect` is what you think of it."""

    tool: Annotated[str, Meta(max_length=500)]
    input: dict[str, Any]
    mode: str | None = None
    cwd: Annotated[str, Meta(max_length=4096)] = ""
    expect: Behavior | None = None


class Trying(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`policy` is a preset, the name of one that is kept, or a file; the calls are judged as those
    of an agent in `folder`."""

    policy: str
    folder: str
    calls: Annotated[list[TriedCall], Meta(max_length=1000)]


class Tried(Struct, frozen=True, kw_only=True):
    """What the policy says of a call, in words too. `is_expected` is null where nothing was."""

    behavior: Behavior
    verdict: Verdict
    text: str
    is_expected: bool | None


class TrialView(Struct, frozen=True, kw_only=True):
    """In the order of the calls; `is_expected`: none of them is another than was expected."""

    results: list[Tried]
    is_expected: bool


class SessionPolicy(Struct, frozen=True, kw_only=True):
    """The policy that a session is under, and who has put it there. `preset` is the one that holds
    now: somebody may have chosen another with a plan. `remembered` are rules that hold beside."""

    digest: str
    source: str
    #: A person, or the agent that made it below itself.
    by: Person | Agent
    at: float
    preset: Preset
    has_guard: bool
    rules: tuple[RuleText, ...]
    remembered: list[RememberedRule]
    is_running: bool


class PolicyChosen(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    policy: str
