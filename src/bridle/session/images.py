"""Pictures for a prompt."""

from __future__ import annotations

import base64
import os
import re
from pathlib import Path

from ..errors import InvalidRequest
from ..protocol.blocks import Base64Source, ImageBlock

#: How a picture of each kind that the model takes begins.
_BEGINNINGS = {
    rb"\x89PNG\r\n\x1a\n": "image/png",
    rb"\xff\xd8\xff": "image/jpeg",
    rb"GIF8": "image/gif",
    rb"RIFF....WEBP": "image/webp",
}


def image(source: bytes | str | os.PathLike[str]) -> ImageBlock:
    """A picture, from a file or its bytes: `session.send(["What is this?", image("a.png")])`."""
    data = source if isinstance(source, bytes) else Path(source).read_bytes()
    for beginning, media_type in _BEGINNINGS.items():
        if re.match(beginning, data, re.DOTALL):
            return ImageBlock(Base64Source(base64.b64encode(data).decode(), media_type))
    raise InvalidRequest("image", "the model takes PNG, JPEG, GIF and WebP; this is none of them")
