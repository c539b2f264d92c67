"""Agents that run agents, by the command: who has the tools, and who stands below whom."""

from __future__ import annotations

import json

import pytest

from .shells import INIT, PROMPT, TURN, Shell, Step


def lists(server: str = "bridle") -> Step:
    """An agent asks what tools a server of ours has."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    return {"mcp": {"server_name": server, "message": message}, "id": "tools"}


@pytest.mark.parametrize("has_them", [True, False])
def test_an_agent_with_loopback_has_the_tools_and_others_have_not(
    shell: Shell, has_them: bool
) -> None:
    fake = shell.claude(PROMPT, INIT, lists(), {"result": "done"}, PROMPT)
    shell.up()
    made = shell.json("start", "go", "--name", "a", *(("--loopback",) if has_them else ()))
    assert made["loopback"] == has_them
    shell.session("a", "idle")
    assert ("claudecode_create" in json.dumps(fake.answer_to("tools"))) == has_them


@pytest.mark.slow
def test_children_stand_below_their_parents_in_a_tree(shell: Shell) -> None:
    shell.claude(*TURN, PROMPT)
    shell.up()
    for name, above in (("a", ""), ("b", ""), ("a1", "a"), ("b1", "b"), ("a11", "a1"), ("a2", "a")):
        shell.run("start", "go", "--name", name, *(("--parent", above) if above else ()))
        shell.session(name, "idle")
    names = ["a", "a1", "a11", "a2", "b", "b1"]
    assert [one["name"] for one in shell.json("ps", "--tree")] == names
    lines = shell.run("ps", "--tree").splitlines()[1:]
    drawn = ["a", "└ a1", "· └ a11", "└ a2", "b", "└ b1"]
    assert [line.split("  ")[0] for line in lines] == drawn
    plain = [line.split()[0] for line in shell.run("ps").splitlines()[1:]]
    assert plain == ["a", "b", "a1", "b1", "a11", "a2"]


def test_who_is_left_out_of_a_tree_leaves_those_below_to_the_next_above(shell: Shell) -> None:
    shell.claude(*TURN, PROMPT)
    shell.up()
    shell.run("start", "go", "--name", "a", "--orphans", "hand-over")
    shell.session("a", "idle")
    shell.run("start", "go", "--name", "b", "--parent", "a")
    shell.session("b", "idle")
    shell.run("stop", "a")
    lines = shell.run("ps", "--tree").splitlines()[1:]
    assert [line.split("  ")[0] for line in lines] == ["b"]
