from __future__ import annotations

import base64
import json
from typing import Any

import msgspec
import pytest

from bridle.protocol.blocks import ToolResultBlock
from bridle.protocol.careful import read_block, read_line
from bridle.protocol.content import (
    Image,
    Json,
    Mixed,
    Text,
    ToolOutput,
    bash_exit_code,
    local_command_output,
    parse_json,
    session_id_of,
    structured_result,
    tool_output,
    tool_results,
)
from bridle.protocol.messages import Message, User
from bridle.protocol.unknown import Unknown

from .lines import SESSION, assistant, init, line, message, result, system, text, tool_result, user

PNG = b"\x89PNG\r\n\x1a\n"


def image(data: str, media_type: str = "image/png") -> dict[str, Any]:
    source = {"type": "base64", "data": data, "media_type": media_type}
    return {"type": "image", "source": source}


PICTURE = image(base64.b64encode(PNG).decode())


def result_block(content: Any, **fields: Any) -> ToolResultBlock:
    block = read_block(line(tool_result(content, **fields)))
    assert isinstance(block, ToolResultBlock)
    return block


def output(content: Any) -> ToolOutput:
    return tool_output(result_block(content))


def read(value: dict[str, Any]) -> Message:
    decoded = read_line(line(value)).decoded
    assert isinstance(decoded, Message)
    return decoded


def read_user(value: dict[str, Any]) -> User:
    decoded = read(value)
    assert isinstance(decoded, User)
    return decoded


# --- what tools give back


def test_a_string_is_text() -> None:
    assert output("done") == Text("done")


def test_one_text_block_is_text_and_several_are_lines_of_it() -> None:
    assert output([text("a")]) == Text("a")
    assert output([text("a"), text("b")]) == Text("a\nb")


def test_no_blocks_at_all_are_empty_text() -> None:
    assert output([]) == Text("")


def test_one_image_is_an_image_with_its_bytes() -> None:
    assert output([PICTURE]) == Image(PNG, "image/png")


def test_text_and_image_are_mixed_in_their_order() -> None:
    mixed = output([text("before"), PICTURE, text("after")])
    assert mixed == Mixed((Text("before"), Image(PNG, "image/png"), Text("after")))
    assert isinstance(mixed, Mixed)
    assert mixed.text == "before\nafter"


@pytest.mark.parametrize("data", ["not base64!", "QUJD\u00e9", "QUI", "=", "QQ=\n="])
def test_an_image_that_is_not_base64_is_unknown_and_does_not_raise(data: str) -> None:
    mixed = output([image(data)])
    assert isinstance(mixed, Mixed)
    (part,) = mixed.parts
    assert isinstance(part, Unknown)
    assert part.type == "image"
    assert json.loads(part.raw) == image(data)
    assert "base64" in part.reason


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "source": {"type": "url", "url": "http://x/y.png"}},
        {"type": "tool_reference", "tool_name": "Later"},
        {"type": "document", "source": {"type": "file", "file_id": "f"}},
    ],
)
def test_a_block_that_is_neither_text_nor_image_data_is_kept_as_unknown(block: Any) -> None:
    mixed = output([text("a"), block])
    assert isinstance(mixed, Mixed)
    assert mixed.text == "a"
    part = mixed.parts[1]
    assert isinstance(part, Unknown)
    assert part.type == block["type"]
    assert json.loads(part.raw) == block


def test_a_block_that_was_unknown_stays_the_same_unknown() -> None:
    block = result_block([{"type": "hologram"}])
    mixed = tool_output(block)
    assert isinstance(mixed, Mixed)
    assert mixed.parts == tuple(block.content)


def test_the_tool_results_of_a_message_are_found_among_its_blocks() -> None:
    found = tool_results(read_user(user([text(), tool_result("a"), tool_result("b")])))
    assert [block.content for block in found] == ["a", "b"]


def test_a_message_of_plain_text_has_no_tool_results() -> None:
    assert tool_results(read_user(user("hello"))) == []


# --- JSON inside of text


def test_json_inside_of_text_is_parsed_on_request() -> None:
    assert Text('{"a": [1]}').json() == Json({"a": [1]})
    assert Text("null").json() == Json(None)
    assert Text("words").json() is None


@pytest.mark.parametrize("words", ["", "{", "[" * 100_000, "\ud800", '"\\ud800"', "1e999"])
def test_text_that_is_no_json_gives_none_and_does_not_raise(words: str) -> None:
    assert parse_json(words) is None


def test_the_structured_result_is_decoded_on_request() -> None:
    message = read_user(user([tool_result("x")], tool_use_result={"stdout": "x"}))
    assert structured_result(message) == Json({"stdout": "x"})


def test_a_structured_result_of_null_differs_from_none() -> None:
    assert structured_result(read_user(user("x", tool_use_result=None))) == Json(None)
    assert structured_result(read_user(user("x"))) is None


def test_a_structured_result_that_can_not_be_decoded_is_none() -> None:
    message = read_user(user("x"))
    message.tool_use_result = msgspec.Raw(b'"\xff"')
    assert structured_result(message) is None


# --- exit codes


@pytest.mark.parametrize(
    ("content", "is_error", "code"),
    [
        ("fine", None, 0),
        ("fine", False, 0),
        ("", None, 0),
        ("Exit code 3\nno such file", True, 3),
        ("Error: Exit code 127\nnot found", True, 127),
        ([text("Exit code 2"), PICTURE], True, 2),
        ("Exit code 3 is what the program printed", None, 0),
        ('{"exitCode": 4, "output": ""}', None, 4),
        ('{"exitCode": 4, "stdout": ""}', None, 0),
        ("Command running in background with ID: b1", False, None),
        ('{"exitCode": "4"}', None, 0),
        ('{"exitCode"', True, None),
        ('{"stdout": ""}', True, None),
        ("The user doesn't want to proceed", True, None),
        ("it said: Exit code 3", True, None),
        ([PICTURE], None, 0),
    ],
)
def test_the_exit_code_of_bash_is_read_from_what_it_gave_back(
    content: Any, is_error: bool | None, code: int | None
) -> None:
    assert bash_exit_code(result_block(content, is_error=is_error)) == code


def test_an_absurd_exit_code_does_not_raise() -> None:
    assert bash_exit_code(result_block("Exit code " + "9" * 5000, is_error=True)) is None
    assert bash_exit_code(result_block('{"exitCode": ' + "9" * 5000 + "}", is_error=True)) is None


# --- slash commands and sessions


def test_old_clis_write_the_output_of_a_slash_command_in_tags() -> None:
    tags = "<local-command-stdout>a\nb</local-command-stdout>"
    errors = "<local-command-stderr>c</local-command-stderr>"
    assert local_command_output(read(user(tags, isReplay=True))) == "a\nb"
    assert local_command_output(read(user(tags + errors))) == "a\nb\nc"


def test_new_clis_write_it_as_a_synthetic_assistant_or_a_system_line() -> None:
    value = assistant(text("a"), {"type": "thinking", "thinking": "?"}, text("b"))
    value["local_command_source"] = "/cost"
    assert local_command_output(read(value)) == "ab"
    assert local_command_output(read(system("local_command_output", content="c"))) == "c"


def test_other_messages_hold_no_output_of_slash_commands() -> None:
    for value in (user("hello"), user([text()]), assistant(text()), result()):
        assert local_command_output(read(value)) is None


def test_a_message_of_the_cli_itself_is_told_from_one_of_a_model() -> None:
    value = assistant(text())
    assert not read(value).is_synthetic  # type: ignore[attr-defined]
    value["message"]["model"] = "<synthetic>"
    assert read(value).is_synthetic  # type: ignore[attr-defined]


def test_the_session_id_is_taken_from_messages_that_can_not_be_out_of_date() -> None:
    assert session_id_of(read(result())) == SESSION
    assert session_id_of(read(init())) is None
    assert session_id_of(read(message("conversation_reset", new_conversation_id="n"))) is None
    assert session_id_of(read(result(session_id=""))) is None
