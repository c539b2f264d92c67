"""How much is kept of a text, an input or an image: to the last character, part and level."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest

from bridle.protocol.blocks import Base64Source, FileSource, ImageBlock, UrlSource
from bridle.views.entries import Excerpt, Picture
from bridle.views.excerpts import (
    MAX_OPEN,
    MAX_TEXT,
    excerpt,
    input_excerpt,
    picture,
    raw_excerpt,
    shorter,
)


def test_a_text_is_cut_where_it_is_too_long_and_says_how_long_it_was() -> None:
    assert excerpt("x" * MAX_TEXT) == Excerpt("x" * MAX_TEXT)
    assert excerpt("x" * (MAX_TEXT + 1)) == Excerpt("x" * MAX_TEXT, is_cut=True, size=MAX_TEXT + 1)
    assert excerpt("abc", 2) == Excerpt("ab", is_cut=True, size=3)


def test_bytes_are_cut_by_characters_and_counted_as_bytes() -> None:
    assert raw_excerpt("éé".encode(), 2) == Excerpt("éé")
    assert raw_excerpt("ééé".encode(), 2) == Excerpt("éé", is_cut=True, size=6)
    assert raw_excerpt(b"", 2) == Excerpt("")


def test_an_input_is_cut_in_its_texts_its_parts_and_its_depth() -> None:
    given: dict[str, Any] = {
        "text": "x" * 11,
        "list": [1, "y" * 12, 3],
        "deep": {"a": {"b": {"c": 1}, "n": None}},
        "left out": 0,
    }
    assert shorter(given, text=10, items=3, depth=3) == {
        "text": "x" * 10 + "… (1 more characters)",
        "list": [1, "y" * 10 + "… (2 more characters)", 3],
        "deep": {"a": {"b": "…", "n": None}},
    }
    assert shorter([[[0]], 1, 2], text=1, items=2, depth=2) == [["…"], 1]
    assert shorter({"long name": 1}, text=4, items=1, depth=1) == {"long": 1}


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"a": "x" * 9_000, "b": 1}, {"a": f"{'x' * 1_000}… (8000 more characters)", "b": 1}),
        (
            {f"{n}": "x" * 900 for n in range(30)},
            {f"{n}": f"{'x' * 100}… (800 more characters)" for n in range(10)},
        ),
    ],
)
def test_of_an_input_as_much_is_kept_as_there_is_room_for(
    given: dict[str, Any], kept: dict[str, Any]
) -> None:
    assert input_excerpt(given) == (kept, True)
    assert len(msgspec.json.encode(kept)) <= MAX_OPEN
    assert input_excerpt(kept) == (kept, False)


def test_what_can_not_be_cut_to_size_is_shown_by_its_beginning() -> None:
    given = {f"{n}": [["x" * 99] * 10] * 10 for n in range(10)}
    cut, is_cut = input_excerpt(given)
    assert is_cut
    assert cut == {"…": msgspec.json.encode(given)[:1_000].decode()}


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 100])
def test_the_size_of_an_image_is_told_whatever_its_padding(size: int) -> None:
    data = base64.b64encode(b"x" * size).decode()
    block = ImageBlock(source=Base64Source(data=data, media_type="image/png"))
    assert picture(block) == Picture("image/png", size)


def test_an_image_elsewhere_is_told_by_where_it_is() -> None:
    assert picture(ImageBlock(source=UrlSource(url="https://x"))) == Picture("", url="https://x")
    assert picture(ImageBlock(source=FileSource(file_id="f1"))) == Picture("", url="f1")
