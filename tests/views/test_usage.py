"""Costs are taken right: totals that grow, start again, or bring along another process's."""

from __future__ import annotations

from typing import Any

import pytest

from bridle.protocol.capabilities import TESTED_VERSIONS
from bridle.views import Tokens, Usage, UsageState, stream, usage, usage_of
from bridle.views.usage import MAX_LAUNCHES

from .helpers import NEW, Told, assistant, recorded


def used(entries: list[stream.Entry]) -> Usage:
    state = UsageState()
    for entry in entries:
        usage.fold(state, entry)
    return usage_of(state)


def model(tokens: int, cost: float) -> dict[str, Any]:
    """As 2.1.325 tells it: `tokens` in, twice as many out."""
    return {"opus": {"inputTokens": tokens, "outputTokens": 2 * tokens, "costUSD": cost}}


def test_of_each_model_all_that_was_used_is_summed_over_the_launches() -> None:
    told = Told()
    for launch, times in (("one", 1), ("two", 10)):
        told.begins(launch)
        use = {
            "inputTokens": times,
            "outputTokens": 2 * times,
            "cacheReadInputTokens": 3 * times,
            "cacheCreationInputTokens": 4 * times,
            "webSearchRequests": 5 * times,
            "costUSD": 0.1 * times,
        }
        told.result(0.1 * times, modelUsage={"opus": use, f"of {launch}": use})
    total = used(told.entries)
    assert set(total.models) == {"opus", "of one", "of two"}
    opus = total.models["opus"]
    assert (opus.tokens, opus.searches) == (Tokens(11, 22, 33, 44), 55)
    assert opus.cost_usd == pytest.approx(1.1)
    assert total.models["of two"].tokens == Tokens(10, 20, 30, 40)
    assert total.tokens == Tokens(22, 44, 66, 88)


def since(tokens: int, cost: float) -> dict[str, Any]:
    return {"model_usage_since_last_result": model(tokens, cost) if tokens else {}}


def test_of_one_launch_the_latest_total_counts() -> None:
    told = Told()
    for turn in (1, 2, 3):
        told.result(0.1 * turn, modelUsage=model(10 * turn, 0.1 * turn))
    total = used(told.entries)
    assert (total.turns, total.seconds) == (3, 1.5)
    assert total.cost_usd == pytest.approx(0.3)
    assert total.tokens == Tokens(30, 60)
    assert total.models["opus"].cost_usd == pytest.approx(0.3)


def test_launches_whose_totals_start_again_are_summed() -> None:
    """As 2.0.75 and 2.1.12 do after a resume."""
    told = Told()
    for launch in ("one", "two"):
        told.begins(launch)
        told.result(0.1, modelUsage=model(10, 0.1))
        told.result(0.2, modelUsage=model(20, 0.2))
    total = used(told.entries)
    assert total.cost_usd == pytest.approx(0.4)
    assert total.tokens == Tokens(40, 80)
    assert [(launch.launch, launch.turns) for launch in total.launches] == [("one", 2), ("two", 2)]


def test_what_a_resumed_process_brings_along_is_not_counted_twice() -> None:
    """As 2.1.325 does: the total goes on from that of the process before."""
    told = Told()
    told.begins("one")
    told.result(0.1, modelUsage=model(10, 0.1), **since(10, 0.1))
    told.begins("two", resume="c")
    told.result(0.2, modelUsage=model(20, 0.2), **since(10, 0.1))
    told.result(0.3, modelUsage=model(30, 0.3), **since(10, 0.1))
    total = used(told.entries)
    assert total.cost_usd == pytest.approx(0.3)
    assert total.tokens == Tokens(30, 60)
    assert [launch.tokens for launch in total.launches] == [Tokens(10, 20), Tokens(20, 40)]


def test_the_time_of_the_service_goes_on_after_a_slash_command() -> None:
    """Which says that it took none; the next turn tells the sum again."""
    told = Told()
    for total in (300, 0, 500):
        told.result(0.1, duration_api_ms=total)
    assert used(told.entries).api_seconds == pytest.approx(0.5)


def test_a_fork_does_not_pay_for_its_origin() -> None:
    told = Told()
    told.begins("one", resume="another session")
    told.result(0.9, modelUsage=model(90, 0.9), **since(10, 0.1), duration_api_ms=9_000)
    total = used(told.entries)
    assert total.cost_usd == pytest.approx(0.1)
    assert total.tokens == Tokens(10, 20)
    # Of the time, only what the turn itself can have waited.
    assert total.api_seconds == 0.5


def test_a_total_that_starts_again_inside_a_process_loses_nothing() -> None:
    told = Told()
    told.result(0.1, modelUsage=model(10, 0.1))
    told.result(0.0, modelUsage={})
    told.result(0.3, modelUsage=model(30, 0.3))
    total = used(told.entries)
    assert total.cost_usd == pytest.approx(0.4)
    assert total.tokens == Tokens(40, 80)


def test_a_clear_of_a_real_cli_loses_nothing() -> None:
    total = used(recorded(NEW, "clear"))
    assert total.cost_usd == pytest.approx(0.00088)
    assert (total.turns, total.tokens) == (3, Tokens(20, 40))


def test_a_result_that_was_never_read_is_in_the_next_total() -> None:
    told = Told()
    told.result(0.1, modelUsage=model(10, 0.1), **since(10, 0.1))
    told.result(0.4, modelUsage=model(40, 0.4), **since(10, 0.1))
    assert used(told.entries).cost_usd == pytest.approx(0.4)


def test_an_empty_list_of_models_forgets_nothing() -> None:
    """As 2.0.75 gives it with the result of a slash command."""
    told = Told()
    told.result(0.1, modelUsage=model(10, 0.1))
    told.result(0.1, modelUsage={})
    assert used(told.entries).tokens == Tokens(10, 20)


@pytest.mark.parametrize("version", TESTED_VERSIONS)
def test_the_turns_of_a_real_cli_are_counted_by_their_results(version: str) -> None:
    total = used(recorded(version, "queued_messages"))
    (launch,) = total.launches
    assert total.turns == launch.turns >= 2
    assert (
        total.cost_usd
        == launch.cost_usd
        == pytest.approx(sum(use.cost_usd for use in total.models.values()))
    )


@pytest.mark.parametrize("version", TESTED_VERSIONS)
def test_what_a_subagent_used_is_counted(version: str) -> None:
    """A result's own `usage` is of the main loop alone."""
    total = used(recorded(version, "subagent"))
    assert total.tokens.total > 60


def test_tokens_are_the_turns_where_no_models_are_told() -> None:
    told = Told()
    told.result(0.1, usage={"input_tokens": 5, "cache_read_input_tokens": 7})
    told.result(0.2, usage={"input_tokens": 5, "output_tokens": 1})
    assert used(told.entries).tokens == Tokens(10, 1, 7)


def test_a_running_turn_is_estimated_and_each_message_counted_once() -> None:
    told = Told()
    text = {"type": "text", "text": "a"}
    for id_, parent in (("m1", None), ("m1", None), ("m2", None), ("s1", "task"), ("m2", None)):
        line = assistant(text, parent_tool_use_id=parent)
        line["message"]["id"] = id_
        told.said(line)
    running = used(told.entries)
    assert running.running == Tokens(30, 3)
    assert running.tokens == Tokens()
    told.result(0.1, modelUsage=model(30, 0.1))
    assert used(told.entries).running == Tokens()


@pytest.mark.slow
def test_old_launches_are_told_only_in_all() -> None:
    told = Told()
    for number in range(MAX_LAUNCHES + 20):
        told.launch = f"launch-{number}"
        told.result(0.1, modelUsage=model(10, 0.1))
    total = used(told.entries)
    assert len(total.launches) == MAX_LAUNCHES + 1
    assert total.turns == MAX_LAUNCHES + 20
    assert total.cost_usd == pytest.approx(0.1 * (MAX_LAUNCHES + 20))
    assert total.models["opus"].tokens == Tokens(1_200, 2_400)
