"""What a tool call really did, compared with what was judged. Pure.

Between our hook's answer and the tool, a hook in the user's settings may change the input. The CLI
shows the input that was used in PostToolUse and PostToolUseFailure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def differs(judged: Mapping[str, Any], used: Mapping[str, Any]) -> bool:
    """Whether the input that was used means something else than the one that was judged.

    Some CLIs fill in what was left out: None, False and nothing are the same here.
    """
    return any(
        judged.get(name) != used.get(name) and bool(judged.get(name) or used.get(name))
        for name in judged.keys() | used.keys()
    )
