"""What stands in the way of running agents here, found before it hurts. Each with its remedy.

Looks and changes nothing; no secret is read, only whether there is one.
"""

from __future__ import annotations

from .examination import Finding, examine

__all__ = ["Finding", "examine"]
