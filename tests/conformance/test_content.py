"""Content: images, subagents, structured output, exit codes."""

from __future__ import annotations

import base64
import json

from bridle.protocol.blocks import Base64Source, ImageBlock, TextBlock
from bridle.protocol.content import (
    Image,
    bash_exit_code,
    structured_result,
    tool_output,
    tool_results,
)
from bridle.protocol.events import MessageReceived
from bridle.protocol.messages import Assistant, User
from bridle.protocol.requests import Initialize
from bridle.protocol.system import TaskNotification
from bridle.testing import Conversation, Hold, Turn, has_image, says, tool_use

from .lab import Lab, allow

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAQAAAAECAIAAAAmkwkpAAAAEElEQVR4nGP4z8AARwzEcQCukw/x0F8jngAAAABJRU5E"
    "rkJggg=="
)


async def test_image_in_prompt(lab: Lab) -> None:
    """An image in a prompt: the model is shown it"""
    picture = ImageBlock(Base64Source(base64.b64encode(PNG).decode(), "image/png"))
    async with lab.run([Turn("A horse.", when=has_image)], initialize=Initialize()) as run:
        run.cli.prompt([TextBlock("what is it?"), picture])
        assert (await run.cli.result()).result == "A horse."


async def test_image_from_tool(lab: Lab) -> None:
    """An image that a tool read: bytes and media type"""
    (lab.cwd / "p.png").write_bytes(PNG)
    read = tool_use("Read", file_path=str(lab.cwd / "p.png"))
    async with lab.run(
        [Turn(read), Turn("Seen.", when=has_image)], initialize=Initialize(), respond=allow
    ) as run:
        run.cli.prompt("look")
        await run.cli.result()
        results = [r for message in run.cli.messages(User) for r in tool_results(message)]
        image = tool_output(results[0])
        assert isinstance(image, Image)
        assert image.media_type == "image/png"
        assert image.data.startswith(b"\x89PNG")


async def test_exit_code(lab: Lab) -> None:
    """A failing command: its exit code is read from the result"""
    codes = []
    commands = [tool_use("Bash", command=c, description="c") for c in ("true", "exit 3")]
    async with lab.run(
        [Turn(commands[0]), Turn(commands[1]), "Done."], initialize=Initialize(), respond=allow
    ) as run:
        run.cli.prompt("run")
        await run.cli.result()
        for message in run.cli.messages(User):
            assert structured_result(message)
            codes += [bash_exit_code(result) for result in tool_results(message)]
        assert codes == [0, 3]


async def test_structured_output(lab: Lab) -> None:
    """--json-schema: the result carries structured_output"""
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "number"}},
        "required": ["name", "age"],
    }
    good = tool_use("StructuredOutput", name="Ada", age=36)
    async with lab.run(
        Conversation([Turn(tool_use("StructuredOutput", name=5)), Turn(good)], then="Done."),
        flags=["--json-schema", json.dumps(schema)],
        initialize=Initialize(),
    ) as run:
        run.cli.prompt("who?")
        assert (await run.cli.result()).structured_output == {"name": "Ada", "age": 36}


async def test_subagent(lab: Lab) -> None:
    """A subagent: its messages carry the parent's tool-use id"""
    task = tool_use(
        "Task" if lab.is_old else "Agent",
        description="sub work",
        prompt="the child's task",
        subagent_type="general-purpose",
    )
    hold = Hold()
    command = tool_use("Bash", command="touch child.txt", description="make")
    child = Conversation(
        [Turn("Child works.", command), Turn(hold, "Child is done.")],
        when=says("the child's task"),
    )
    parent = Conversation([Turn("Delegating.", task)], then="Parent is done.")
    async with lab.run(parent, child, initialize=Initialize(), respond=allow) as run:
        run.cli.prompt("delegate")
        if lab.is_old:
            hold.release()
            await run.cli.result()
        else:
            await run.cli.result()
            hold.release()
            await run.cli.message(TaskNotification)
            unsolicited = await run.cli.result()
            assert unsolicited.origin
            assert unsolicited.origin.kind == "task-notification"
        assert lab.exists("child.txt")
        inner = [m for m in run.cli.messages(Assistant) if m.parent_tool_use_id]
        assert inner
        in_background = bool(run.cli.messages(TaskNotification))
        assert in_background is not lab.is_old
        lab.saw(
            "in the background, then a turn of its own" if in_background else "in the foreground"
        )


async def test_half_a_character(lab: Lab) -> None:
    """A character that the CLI cut in two, at the end of a long output"""
    # One unit, then pairs: a cut at any even length falls between the halves of one.
    script = "import sys; sys.stdout.buffer.write(('x' + chr(0x1F40E) * 40000).encode())"
    command = tool_use("Bash", command=f'python3 -c "{script}"', description="many horses")
    async with lab.run([Turn(command), "Done."], initialize=Initialize(), respond=allow) as run:
        run.cli.prompt("run")
        await run.cli.result()
        raws = [e.raw for e in run.cli.events if isinstance(e, MessageReceived)]
        halves = sum(b"\\ud83d" in raw for raw in raws)
        assert bool(halves) is lab.is_old
        assert run.cli.connection.counters.repaired == halves
        assert run.cli.connection.counters.malformed == 0
        lab.saw("a lone half, as an escape" if halves else "not cut in two")
