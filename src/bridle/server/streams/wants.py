"""What one who follows wants to have: which kinds, whether also what is live, hidden or not."""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct

from .frames import Frame, Veil


class Kinds(Struct, frozen=True):
    """Kinds of events by name, or by how they begin. Without any, all."""

    names: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()

    def has(self, kind: str) -> bool:
        if not self.names and not self.prefixes:
            return True
        return kind in self.names or kind.startswith(self.prefixes)


class Want(Struct, frozen=True):
    """Equal ones are given the same bytes. Without a `veil` nothing is hidden."""

    kinds: Kinds = Kinds()
    veil: Veil | None = None
    #: Whether also what is passing by and not stored.
    has_live: bool = True

    def hide(self, data: bytes) -> bytes:
        """JSON, as it may be shown."""
        return self.veil(data) if self.veil else data

    def takes(self, frame: Frame) -> bool:
        return (self.has_live or not frame.is_live) and self.kinds.has(frame.kind)


@lru_cache(maxsize=256)
def kinds_of(text: str) -> Kinds:
    """`agent.said,approval.*` and the like; an empty text is all kinds."""
    words = [word for word in (part.strip() for part in text.split(",")) if word]
    names = frozenset(word for word in words if not word.endswith("*"))
    return Kinds(names, tuple(word[:-1] for word in words if word.endswith("*")))
