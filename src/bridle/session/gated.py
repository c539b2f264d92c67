"""Requests to the CLI that the gate must know of, too."""

from __future__ import annotations

from ..policy.force import InForce
from ..protocol.answers import Interrupted, ModeSet
from ..protocol.permissions import PermissionMode
from .controls import Controls
from .gate import Gate


class GatedControls(Controls):
    """What can be asked of a CLI that has a gate; or none."""

    _gate: Gate | None

    @property
    def policy(self) -> InForce | None:
        """The policy that is in force; None for a session without a gate."""
        return self._gate.policy if self._gate else None

    async def interrupt(self, *, timeout: float | None = None) -> Interrupted:
        """End the turn that runs. Prompts that are queued stay so; new CLIs tell which.

        What waits for an approval is cancelled now, not when the CLI says so.
        """
        if self._gate:
            self._gate.interrupted()
        return await super().interrupt(timeout=timeout)

    async def set_permission_mode(
        self, mode: PermissionMode, *, timeout: float | None = None
    ) -> ModeSet:
        """Ask for another mode; `Session.permission_mode` is what the CLI has confirmed.

        It never loosens the policy; where the mode is stricter than what was chosen, so is that.
        """
        if self._gate:
            self._gate.policy.tighten(mode)
        return await super().set_permission_mode(mode, timeout=timeout)
