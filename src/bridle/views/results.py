"""What tool results say: how a call ended, its output, its exit code.

Owns the signs by which CLIs tell a refusal from a failure; what approvals say of the same call is
known by the folds, and goes first.
"""

from __future__ import annotations

from ..protocol.blocks import Block, ImageBlock, TextBlock, ToolResultBlock
from ..protocol.content import bash_exit_code
from ..protocol.messages import User
from ..protocol.unknown import Unknown
from .entries import CallEnd, Outcome, Picture
from .excerpts import excerpt, picture
from .reading import Cancelled, Decided, Expired

_INTERRUPTED = ("[Request interrupted by user", "Tool permission request failed: AbortError")


def outcome_of(block: ToolResultBlock, message: User) -> Outcome:
    """As far as the result alone tells. Old CLIs tell a refusal only by its words, which are
    anybody's: for those it is what approvals and rules said that counts."""
    if not block.is_error:
        return "ok"
    for meta in message.tool_result_meta or ():
        if meta.get("id") == block.tool_use_id and meta.get("non_execution_kind"):
            # New CLIs call an interrupt a rejection too; but then nobody has decided.
            return "denied" if meta.get("permission_decision") else "cancelled"
    text = text_of(block)
    return "cancelled" if any(sign in text for sign in _INTERRUPTED) else "error"


def refusal_in(ending: Decided | Expired | Cancelled) -> Outcome | None:
    """What an approval's end means for its call; None where it may run."""
    match ending:
        case Decided(choice=choice):
            return "denied" if choice.is_no else None
        case Expired():
            return "denied"
        case Cancelled():
            return "cancelled"


def outcome_after(refusal: Outcome | None, block: ToolResultBlock, message: User) -> Outcome:
    """How a call ended of which approvals and rules said this: they know it better than words."""
    outcome = outcome_of(block, message)
    return refusal if refusal and outcome != "ok" else outcome


def end_of(
    block: ToolResultBlock,
    message: User,
    name: str,
    *,
    refusal: Outcome | None,
    at: float,
    seq: int,
) -> CallEnd:
    outcome = outcome_after(refusal, block, message)
    # CLIs write no code on success, and `Exit code N` first on a failure.
    has_run = outcome in ("ok", "error", "cancelled") and name == "Bash"
    return CallEnd(
        outcome=outcome,
        at=at,
        seq=seq,
        output=excerpt(text_of(block)),
        pictures=pictures_in(block.content),
        exit_code=bash_exit_code(block) if has_run else None,
    )


def text_of(block: ToolResultBlock) -> str:
    if isinstance(block.content, str):
        return block.content
    return "\n".join(shown for part in block.content if (shown := _shown(part)))


def pictures_in(content: str | list[Block]) -> tuple[Picture, ...]:
    if isinstance(content, str):
        return ()
    return tuple(picture(part) for part in content if isinstance(part, ImageBlock))


def _shown(part: Block) -> str:
    match part:
        case TextBlock(text=text):
            return text
        case ImageBlock():
            return ""
        case Unknown(type=kind, raw=raw):
            return f"[{kind or 'unknown'}] {raw[:1_000].decode(errors='replace')}"
        case _:
            return f"[{part.__struct_config__.tag}]"
