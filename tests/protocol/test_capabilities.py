from __future__ import annotations

from typing import get_args

import pytest

from bridle.errors import InvalidRequest
from bridle.protocol.answers import Initialized
from bridle.protocol.capabilities import (
    ANSWERED_SINCE,
    TESTED_VERSIONS,
    Capabilities,
    parse_version,
)
from bridle.protocol.requests import Initialize, OutboundRequest, RewindFiles

from .lines import connect, init, line, success


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("2.1.12", (2, 1, 12)),
        ("2.1.12 (Claude Code)", (2, 1, 12)),
        (" v2.0.75-beta.1\n", (2, 0, 75)),
        ("2.1", None),
        ("latest", None),
        ("", None),
        (None, None),
        ("9" * 5000 + ".1.1", None),
    ],
)
def test_a_version_is_read_from_what_a_cli_prints(
    text: str | None, version: tuple[int, ...] | None
) -> None:
    assert parse_version(text) == version


def test_the_table_has_every_request_that_can_be_asked() -> None:
    tags = {str(kind.__struct_config__.tag) for kind in get_args(OutboundRequest)}
    assert set(ANSWERED_SINCE) == tags


@pytest.mark.parametrize(
    ("version", "subtype", "support"),
    [
        ("2.0.75", "initialize", "yes"),
        ("2.0.75", "get_settings", "no"),
        ("2.1.12", "get_settings", "no"),
        ("2.1.100", "get_settings", "unknown"),
        ("2.1.325", "get_settings", "yes"),
        ("3.0.0", "get_settings", "yes"),
        ("1.0.0", "initialize", "unknown"),
        ("1.0.0", "get_settings", "no"),
        ("2.1.325", "sing", "unknown"),
        ("strange", "initialize", "unknown"),
        (None, "initialize", "unknown"),
    ],
)
def test_what_a_version_answers_is_judged_by_the_tested_ones(
    version: str | None, subtype: str, support: str
) -> None:
    assert Capabilities(version).answers(subtype) == support


@pytest.mark.parametrize("version", TESTED_VERSIONS)
def test_of_a_tested_version_everything_is_known(version: str) -> None:
    assert {Capabilities(version).answers(subtype) for subtype in ANSWERED_SINCE} <= {"yes", "no"}


def test_behaviours_are_judged_in_the_same_way() -> None:
    assert Capabilities("2.1.12").does("settings can't remove hooks") == "no"
    assert Capabilities("2.1.325").does("settings can't remove hooks") == "yes"
    assert Capabilities().does("settings can't remove hooks") == "unknown"
    assert Capabilities("2.0.75").does("rewind dry run") == "no"
    assert Capabilities("2.1.0").does("rewind dry run") == "unknown"
    assert Capabilities("2.1.12").does("rewind dry run") == "yes"


@pytest.mark.parametrize("version", [None, "2.0.75", "2.1.0", "2.1.11", "strange"])
def test_a_dry_run_is_refused_where_the_cli_may_rewind_for_real(version: str | None) -> None:
    connection = connect(version=version)
    with pytest.raises(InvalidRequest, match="may ignore dry_run") as caught:
        connection.request(RewindFiles("u-1", dry_run=True))
    assert caught.value.subtype == "rewind_files"
    assert (version or "unknown version") in caught.value.reason
    assert not connection.asked


@pytest.mark.parametrize("version", ["2.1.12", "2.1.325 (Claude Code)", "3.0.0"])
def test_a_dry_run_is_written_where_the_cli_understands_it(version: str) -> None:
    _, data = connect(version=version).request(RewindFiles("u-1", dry_run=True))
    assert b'"dry_run":true' in data


def test_a_real_rewind_is_written_whatever_the_version() -> None:
    assert connect().request(RewindFiles("u-1"))[1]
    assert connect(version="2.0.75").request(RewindFiles("u-1", dry_run=False))[1]


def test_the_version_is_learnt_from_the_first_line_that_tells_it() -> None:
    connection = connect()
    connection.receive(line(init()))
    assert connection.capabilities.version is None
    connection.receive(line(init(claude_code_version="2.1.12")))
    connection.receive(line(init(claude_code_version="2.1.325")))
    assert connection.capabilities.version == "2.1.12"


def test_a_version_that_the_launch_found_out_is_not_replaced() -> None:
    connection = connect(version="2.0.75")
    connection.receive(line(init(claude_code_version="2.1.325")))
    assert connection.capabilities.version == "2.0.75"


def test_what_initialize_answers_is_kept_and_tells_the_version() -> None:
    connection = connect()
    request_id, _ = connection.request(Initialize())
    told = {"claude_code_version": "2.1.325", "hook_on_failure_supported": True, "pid": 7}
    connection.receive(line(success(request_id, told)))
    assert connection.capabilities.version == "2.1.325"
    assert connection.capabilities.initialized == Initialized(
        claude_code_version="2.1.325", hook_on_failure_supported=True, pid=7
    )
    assert connection.capabilities.hook_on_failure


def test_on_failure_is_supported_only_where_the_cli_says_so() -> None:
    assert not Capabilities("2.1.325").hook_on_failure
    assert not Capabilities(initialized=Initialized()).hook_on_failure


def test_a_second_initialize_replaces_what_the_first_one_told() -> None:
    known = Capabilities("2.1.325").with_initialized(Initialized(pid=1))
    assert known.with_initialized(Initialized(pid=2)) == Capabilities("2.1.325", Initialized(pid=2))


def test_a_cli_that_announces_anything_keeps_commands_as_they_are() -> None:
    """A version number is only a claim."""
    assert not Capabilities("9.9.9").keeps_commands
    told = Capabilities("2.1.12").with_initialized(Initialized(capabilities=["x"]))
    assert told.keeps_commands
