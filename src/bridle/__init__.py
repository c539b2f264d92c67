"""Bridle: run Claude Code agents, decide what they may do, keep every event.

Importing it is cheap: `bridle.protocol` (the wire, without I/O), `bridle.testing` (the kit) and
`bridle.errors` are imported when they are asked for.
"""

from .errors import BridleError

__version__ = "0.1.0"

__all__ = ["BridleError", "__version__"]
