"""Pictures for a prompt."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from bridle import image
from bridle.errors import InvalidRequest
from bridle.protocol.blocks import Base64Source

PNG = b"\x89PNG\r\n\x1a\n rest"


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff rest", "image/jpeg"),
        (b"GIF89a rest", "image/gif"),
        (b"RIFF\x00\x00\x00\x00WEBP rest", "image/webp"),
    ],
)
def test_a_picture_is_known_by_how_it_begins(data: bytes, media_type: str, tmp_path: Path) -> None:
    path = tmp_path / "picture"
    path.write_bytes(data)
    for source in (data, path, str(path)):
        block = image(source)
        assert isinstance(block.source, Base64Source)
        assert block.source.media_type == media_type
        assert base64.b64decode(block.source.data) == data


@pytest.mark.parametrize("data", [b"", b"BM bitmap", b"RIFF\x00\x00\x00\x00WAVE sound"])
def test_what_the_model_does_not_take_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidRequest, match="PNG, JPEG, GIF and WebP"):
        image(data)
