"""The root of the tree, and how an error is told."""

from __future__ import annotations


def words_of(error: BaseException) -> str:
    """An error's type and text. That it can't be told must never be the reason why it is not."""
    try:
        text = str(error).encode("utf-8", "replace").decode()
    except Exception:  # noqa: BLE001 - somebody's __str__ has a mistake in it
        return type(error).__name__
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class BridleError(Exception):
    """The root of everything that Bridle raises on purpose."""
