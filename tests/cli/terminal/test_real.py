"""`bridle run` with the real CLIs, each against a scripted model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from bridle.testing import Hold, InstalledCli, ScriptedModel, Turn, text, tool_use

from .places import Place

KEYS = "[y]es  [n]o  [a]lways"
Model = Callable[..., Awaitable[ScriptedModel]]


def use(place: Place, cli: InstalledCli, model: ScriptedModel) -> None:
    """The next agent here is this CLI, with this model."""
    place.env.update(model.environment(place.folder / "user"))
    place.env["BRIDLE_CLAUDE"] = " ".join(cli.command)


@pytest.mark.slow
async def test_a_real_agent_is_shown_asked_about_and_goes_on(
    place: Place, real_cli: InstalledCli, scripted_model: Model
) -> None:
    file = place.work / "app.py"
    file.write_text("def f():\n    return 1\n")
    edit = {"file_path": str(file), "old_string": "return 1", "new_string": "return 2"}
    command = "grep return app.py && exit 3"
    script = [
        Turn("I'll **look** first.", tool_use("Read", file_path=str(file))),
        Turn("It should be 2.", tool_use("Edit", **edit)),
        Turn("Now try it.", tool_use("Bash", command=command, description="Try")),
        "Done.",
    ]
    use(place, real_cli, await scripted_model(script))
    async with place.window("run", "Make it 2") as window:
        assert "● I'll look first." in await window.sees("● Read  app.py")
        assert "+return 2" in await window.sees(KEYS)
        window.types("y")
        await window.sees(f"$ {command}")
        await window.sees(KEYS)
        window.types("y")
        assert await window.ends() == 0
        lines = window.screen.text.splitlines()
    assert file.read_text() == "def f():\n    return 2\n"
    start = lines.index(f"● Bash  {command}")
    end = lines.index("  └ exit 3", start)
    assert lines[end + 1] == "        return 2"
    assert "● Done." in lines


@pytest.mark.slow
async def test_ctrl_c_interrupts_a_real_turn(
    place: Place, real_cli: InstalledCli, scripted_model: Model
) -> None:
    hold = Hold()
    use(place, real_cli, await scripted_model([Turn(text("Words that come"), hold)]))
    async with place.window("run", "Speak") as window:
        await window.sees("Words that come")
        window.types("\x03")
        await window.sees("interrupting")
        assert await window.ends() == 130
        assert "! interrupted" in window.screen.text
