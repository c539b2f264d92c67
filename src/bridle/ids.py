"""Names that nobody else has. (`secrets` would do it too, and take 4 ms to import.)"""

from __future__ import annotations

import os
from uuid import UUID


def new_token(size: int) -> str:
    """Random bytes as hexadecimal digits."""
    return os.urandom(size).hex()


def new_uuid() -> str:
    return str(UUID(bytes=os.urandom(16), version=4))
