"""A plan under review: where its text is, how an edited one reaches the CLI, and how it went on.

New CLIs take an edited plan from the answer. Old ones read the plan's file when the tool runs, so
there the file is written; where no file is known, the plan goes back to the model with a no.
"""

from __future__ import annotations

import logging
from pathlib import Path

import msgspec
from msgspec import UnsetType

from ..policy.paths import clean, is_inside, place
from ..policy.tools import EDITS, PLAN
from ..policy.verdicts import Call, Ground
from ..protocol.control import CanUseTool
from ..protocol.permissions import Allow, Decision, Deny, SetMode

CHANGED = (
    "The plan was changed by its reviewer. This is the plan now; call ExitPlanMode again with it, "
    "unchanged:\n\n"
)

_log = logging.getLogger("bridle.session")


class Plans:
    """The plan of one agent."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        home = ground.claude_home or f"{ground.home.rstrip('/')}/.claude"
        self._folder = clean(f"{home}/plans")
        self._file: Path | None = None
        self._chosen: str | None = None
        self._call = ""

    def saw(self, call: Call) -> None:
        """A call that may be the model writing its plan down."""
        path = call.input.get("file_path")
        if (
            call.tool in EDITS
            and isinstance(path, str)
            and path.endswith(".md")
            and "\0" not in path
        ):
            where = place(path, call.cwd or self._ground.folder, self._ground)
            if is_inside(where.written, self._folder):
                self._file = Path(where.written)

    def shown(self, request: CanUseTool) -> CanUseTool:
        """The request with the plan's text in it, where only the file has that."""
        if request.tool_name != PLAN or request.input.get("plan") or self._file is None:
            return request
        try:
            text = self._file.read_text()
        except (OSError, UnicodeDecodeError):
            return request
        return msgspec.structs.replace(request, input={**request.input, "plan": text})

    def delivered_by(self, decision: Decision, request: CanUseTool, *, is_read: bool) -> Decision:
        """The decision as this CLI takes it. `is_read`: it reads an edited plan from the answer."""
        if request.tool_name != PLAN or not isinstance(decision, Allow) or is_read:
            return decision
        given = decision.updated_input
        plan = None if isinstance(given, UnsetType) else given.get("plan")
        if not isinstance(plan, str) or plan == request.input.get("plan"):
            return decision
        if self._file is not None:
            try:
                self._file.write_text(plan)
            except OSError:
                _log.exception("the edited plan can't be written")
            else:
                return decision
        return Deny(CHANGED + plan)

    # --- how it goes on

    def chose(self, decision: Decision, request: CanUseTool) -> None:
        """Whoever approved the plan has chosen a mode."""
        if request.tool_name == PLAN and isinstance(decision, Allow):
            updates = decision.updated_permissions
            modes = [
                update.mode
                for update in (() if isinstance(updates, UnsetType) else updates)
                if isinstance(update, SetMode)
            ]
            self._chosen = modes[-1] if modes else None
            self._call = request.tool_use_id or ""

    def told(self, mode: str) -> tuple[str, str] | None:
        """The CLI says in which mode it is: for which call another one or this was chosen."""
        if self._chosen is None or mode == "plan":
            return None  # nothing was chosen, or it has not gone on yet
        chosen, self._chosen = self._chosen, None
        if chosen != mode:
            _log.warning("the plan was to go on in %s, but the CLI is in %s", chosen, mode)
        return self._call, chosen
