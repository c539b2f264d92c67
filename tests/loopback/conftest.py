"""The same homes as the supervisor's tests have."""

from __future__ import annotations

from tests.supervisor.conftest import home, mark

__all__ = ["home", "mark"]
