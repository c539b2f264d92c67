"""Bridle: run Claude Code agents, decide what they may do, keep every event."""

__version__ = "0.1.0"
