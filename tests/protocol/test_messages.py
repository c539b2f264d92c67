"""What a result tells of its turn."""

from __future__ import annotations

import pytest

from bridle.errors import TurnFailed
from bridle.protocol.blocks import TextBlock, ThinkingBlock
from bridle.protocol.messages import ApiMessage, Assistant, Result


def test_the_text_of_a_result_is_the_agents_last_words() -> None:
    assert Result(subtype="success", is_error=False, result="Done.").text == "Done."
    assert Result(subtype="success", is_error=False, result="").text == ""


def test_a_result_without_words_tells_its_errors() -> None:
    failed = Result(subtype="error_during_execution", is_error=True, errors=["one", "two"])
    assert failed.text == "one\ntwo"


def test_a_good_result_gives_itself() -> None:
    result = Result(subtype="success", is_error=False, result="Done.")
    assert result.raise_for_error() is result


@pytest.mark.parametrize(
    ("subtype", "is_error"),
    [("success", True), ("error_max_turns", True), ("error_during_execution", False)],
)
def test_a_bad_result_raises_with_what_the_cli_said(subtype: str, is_error: bool) -> None:
    result = Result(subtype=subtype, is_error=is_error, result="no credit")
    with pytest.raises(TurnFailed, match=f"{subtype}: no credit") as caught:
        result.raise_for_error()
    assert caught.value.result is result


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (Result(subtype="error_during_execution", is_error=False), True),
        (Result(subtype="error_during_execution", is_error=True), False),
        (Result(subtype="success", is_error=False), False),
        (Result(subtype="success", is_error=False, terminal_reason="completed"), False),
        (Result(subtype="x", is_error=True, terminal_reason="aborted_streaming"), True),
    ],
)
def test_an_interrupted_turn_is_known_on_every_version(result: Result, expected: bool) -> None:
    assert result.is_interrupted is expected


def test_the_text_of_an_assistant_is_its_words_alone() -> None:
    words = [TextBlock("Hel"), ThinkingBlock("hm"), TextBlock("lo.")]
    assert Assistant(message=ApiMessage(id="m", model="m", content=words)).text == "Hello."  # type: ignore[arg-type]
