"""Permissions on the wire: what may be answered to `can_use_tool`, and updates of the CLI's rules.

Owns the shapes (protocol.md section 3); judging is the policy's work.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from msgspec import UNSET, Struct, UnsetType, field

PermissionMode: TypeAlias = Literal[
    "default", "acceptEdits", "plan", "bypassPermissions", "dontAsk", "auto"
]
Behavior: TypeAlias = Literal["allow", "deny", "ask"]
Destination: TypeAlias = Literal[
    "userSettings", "projectSettings", "localSettings", "session", "cliArg"
]


class PermissionRule(Struct, rename="camel"):
    tool_name: str
    rule_content: str | UnsetType = UNSET


class _Update(Struct, tag_field="type"):
    """A change of the permissions that the CLI itself holds."""


class AddRules(_Update, tag="addRules"):
    rules: list[PermissionRule]
    behavior: Behavior
    destination: Destination


class ReplaceRules(_Update, tag="replaceRules"):
    rules: list[PermissionRule]
    behavior: Behavior
    destination: Destination


class RemoveRules(_Update, tag="removeRules"):
    rules: list[PermissionRule]
    behavior: Behavior
    destination: Destination


class SetMode(_Update, tag="setMode"):
    """Whether it took effect shows in what comes back (`system/status`), never in having asked."""

    mode: PermissionMode
    destination: Destination


class AddDirectories(_Update, tag="addDirectories"):
    directories: list[str]
    destination: Destination


class RemoveDirectories(_Update, tag="removeDirectories"):
    directories: list[str]
    destination: Destination


PermissionUpdate: TypeAlias = (
    AddRules | ReplaceRules | RemoveRules | SetMode | AddDirectories | RemoveDirectories
)


class Allow(Struct, tag_field="behavior", tag="allow"):
    """Let the tool run, with `updated_input` where given, else with the input as it was asked.

    The full input is always echoed: old CLIs deny an allow without one and take `{}` literally.
    """

    updated_input: dict[str, Any] | UnsetType = field(name="updatedInput", default=UNSET)
    updated_permissions: Sequence[PermissionUpdate] | UnsetType = field(
        name="updatedPermissions", default=UNSET
    )
    decision_classification: str | UnsetType = field(name="decisionClassification", default=UNSET)


class Deny(Struct, tag_field="behavior", tag="deny"):
    """Do not run the tool; `message` is what the model is told. `interrupt` also ends the turn."""

    message: str
    interrupt: bool | UnsetType = UNSET


Decision: TypeAlias = Allow | Deny
