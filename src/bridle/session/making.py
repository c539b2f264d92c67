"""What a session is made of, whoever looks after its process: handlers behind a gate, and a launch.

Owns what a gate needs of the launch; does not start anything.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping

import msgspec
from msgspec import UNSET

from ..errors import InvalidLaunch
from ..process.arguments import can_bypass
from ..process.spec import LaunchSpec
from ..protocol.requests import Agent, Initialize
from .desk import Approver, Desk
from .folder import Survey, kept_out, survey_of, without_git
from .gate import Gate
from .hooks import Hooks
from .options import REQUEST_SECONDS
from .responder import DialogHandler, Elicitor, Handlers
from .tools import ToolServers
from .user_rules import user_rules, with_mode

#: What a gate depends on.
_OURS = ("--settings", "--setting-sources", "--permission-prompt-tool")

HANDSHAKE_VARIABLE = "CLAUDE_CODE_STREAM_CLOSE_TIMEOUT"

_log = logging.getLogger("bridle.session")


def handlers_of(
    approver: Approver | Desk | None,
    hooks: Hooks,
    servers: ToolServers,
    elicit: Elicitor | None,
    dialog: DialogHandler | None,
    gate: Gate | None,
) -> Handlers:
    seen = hooks.behind(gate.hook, gate.ran, gate.changed) if gate else hooks
    elicit = elicit or _elicitor(approver)
    return Handlers(_asked(approver, gate), seen, servers, elicit, dialog, gate)


def _asked(approver: Approver | Desk | None, gate: Gate | None) -> Approver | None:
    """Who answers the CLI's own questions."""
    if gate:
        return gate.question
    if isinstance(approver, Desk):
        raise TypeError("a desk needs a policy: without a gate it would not see every call")
    return approver


def _elicitor(approver: object) -> Elicitor | None:
    """A desk asks people about what MCP servers want to know, too."""
    return getattr(approver, "elicit", None) if isinstance(approver, Desk) else None


def launched(
    spec: LaunchSpec, gate: Gate | None, trust: Survey | None
) -> tuple[LaunchSpec, Survey | None]:
    """The launch that a gate needs, and what is kept out of it."""
    if gate is None:
        return with_mode(spec), None
    spec, withheld = _gated(spec, gate, trust)
    return with_mode(spec), withheld


def _gated(spec: LaunchSpec, gate: Gate, trust: Survey | None) -> tuple[LaunchSpec, Survey | None]:
    if spec.permission_mode == "plan" and can_bypass(spec):
        # So that whoever approves the plan may choose how to go on. The gate sees all calls then.
        spec = msgspec.structs.replace(spec, allow_dangerously_skip_permissions=True)
    _check_extra(spec)
    found = survey_of(spec.cwd or ".")
    # What it denies, or wants asked, holds whoever trusts it: old CLIs hold to none of that. The
    # same goes for the user's own settings.
    gate.policy.add_rules((*found.rules, *user_rules(spec)))
    is_trusted = trust is not None and found.is_same(trust)
    if is_trusted:
        gate.policy.trust(map(str, found.git))
    else:
        spec = without_git(spec, found)
    if spec.setting_sources is not None or is_trusted:
        return spec, None
    # Also if it brings nothing: what comes there later would be in force at once.
    if not found.brings:
        return kept_out(spec, found), None
    _log.warning(
        "kept out what %s brings (%s); to trust it: connect(trust=bridle.survey(%r))",
        found.folder,
        ", ".join(sorted({brought.what for brought in found.brings})),
        found.folder,
    )
    return kept_out(spec, found), found


def _check_extra(spec: LaunchSpec) -> None:
    for word in spec.extra_args:
        if word.partition("=")[0] in _OURS:
            raise InvalidLaunch(
                f"extra_args with {word} would go round the gate: use the option of that name, "
                "or policy=bridle.Ungated()"
            )


def hello(servers: ToolServers, agents: Mapping[str, Agent] | None) -> Initialize:
    return Initialize(
        agents=dict(agents) if agents else UNSET, sdk_mcp_servers=servers.names or UNSET
    )


def handshake_seconds(spec: LaunchSpec) -> float:
    """The CLI's own variable, in milliseconds, holds for us too."""
    text = spec.env.get(HANDSHAKE_VARIABLE) or os.environ.get(HANDSHAKE_VARIABLE)
    try:
        return float(text) / 1000 if text else REQUEST_SECONDS
    except ValueError as error:
        raise InvalidLaunch(f"{HANDSHAKE_VARIABLE} is not a number: {text!r}") from error
