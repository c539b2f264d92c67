"""Content: images, subagents, structured output, exit codes."""

from __future__ import annotations

import asyncio
import base64

import msgspec

import bridle
from bridle.ids import new_uuid
from bridle.policy.tools import KNOWN
from bridle.protocol.content import (
    Image,
    bash_exit_code,
    structured_result,
    tool_output,
    tool_results,
)
from bridle.protocol.messages import Assistant, User
from bridle.protocol.outbound import WithMentions, prompt_line
from bridle.protocol.permissions import Deny
from bridle.protocol.system import Init, TaskNotification
from bridle.testing import Conversation, Hold, Turn, has_image, says, tool_use

from .lab import Lab
from .talk import LIMIT_SECONDS, Judge, Talk, hear

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAQAAAAECAIAAAAmkwkpAAAAEElEQVR4nGP4z8AARwzEcQCukw/x0F8jngAAAABJRU5E"
    "rkJggg=="
)


async def test_image_in_prompt(lab: Lab) -> None:
    """An image in a prompt: the model is shown it"""
    async with lab.session([Turn("A horse.", when=has_image)]) as talk:
        heard = await talk.say(["what is it?", bridle.image(PNG)])
        assert heard.result.result == "A horse."


async def test_mentions(lab: Lab) -> None:
    """`@path` in a prompt is read unasked if it is sent `WithMentions`, and else not"""
    secret = lab.cwd.parent / "secret.txt"
    secret.write_text("XYZZY is the word")
    text = f"@{secret} and (@{secret}) or @../secret.txt\n@{secret} \u00a0@../secret.txt"
    for prompt, shown in ((text, False), ([text], False), (WithMentions(text), True)):
        assert ("XYZZY" in await shown_of(lab, prompt_line(prompt))) == shown
        assert "XYZZY" not in await shown_of(lab, prompt_line(prompt, is_verbatim=True))


async def test_verbatim(lab: Lab) -> None:
    """What agents tell each other is only text: no slash command is run, no file of it is read"""
    (lab.cwd / "secret.txt").write_text("XYZZY is the word")
    commands = lab.config_dir / "commands"
    commands.mkdir(parents=True)
    (commands / "look.md").write_text("Look at it, $ARGUMENTS: @secret.txt\n")
    for prompt in ("/look closely", ["/look closely"]):
        shown = await shown_of(lab, prompt_line(prompt))
        assert "Look at it, closely" in shown
        assert "XYZZY" in shown
        shown = await shown_of(lab, prompt_line(prompt, is_verbatim=True))
        assert "/look closely" in shown
        assert "Look at it, closely" not in shown
        assert "XYZZY" not in shown


async def shown_of(lab: Lab, line: bytes) -> str:
    """What the model is shown for a prompt."""
    uuid = new_uuid()
    line = msgspec.json.encode({**msgspec.json.decode(line), "uuid": uuid}) + b"\n"
    async with lab.session([Turn("Read."), Turn("Read.")], setting_sources=["user"]) as talk:
        await hear(talk.session.prompt(uuid, line))
        return msgspec.json.encode([one.messages for one in talk.model.requests]).decode()


async def test_image_from_tool(lab: Lab) -> None:
    """An image that a tool read: bytes and media type"""
    (lab.cwd / "p.png").write_bytes(PNG)
    read = tool_use("Read", file_path=str(lab.cwd / "p.png"))
    script = [Turn(read), Turn("Seen.", when=has_image)]
    async with lab.session(script, approver=Judge()) as talk:
        heard = await talk.say("look")
        results = [r for message in heard.of(User) for r in tool_results(message)]
        image = tool_output(results[0])
        assert isinstance(image, Image)
        assert image.media_type == "image/png"
        assert image.data.startswith(b"\x89PNG")


async def test_exit_code(lab: Lab) -> None:
    """A failing command: its exit code is read from the result"""
    codes = []
    commands = [tool_use("Bash", command=c, description="c") for c in ("true", "exit 3")]
    script: list[Turn | str] = [Turn(commands[0]), Turn(commands[1]), "Done."]
    async with lab.session(script, approver=Judge()) as talk:
        heard = await talk.say("run")
        for message in heard.of(User):
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
    calls = [tool_use("StructuredOutput", name=5), tool_use("StructuredOutput", name="Ada", age=36)]
    script = Conversation([Turn(call) for call in calls], then="Done.")
    async with lab.session(script, json_schema=schema, policy="ask") as talk:
        heard = await talk.say("who?")
        assert {*heard.of(Init)[0].tools} <= KNOWN
        assert heard.result.structured_output == {"name": "Ada", "age": 36}


async def test_subagent(lab: Lab) -> None:
    """A subagent: its messages carry the parent's tool-use id"""
    hold = Hold()
    command = tool_use("Bash", command="touch child.txt", description="make")
    child = Conversation(
        [Turn("Child works.", command), Turn(hold, "Child is done.")],
        when=says("the child's task"),
    )
    async with lab.session(_parent(lab, "general-purpose"), child, approver=Judge()) as talk:
        await _delegate(lab, talk, hold)
        assert lab.exists("child.txt")
        assert [m for m in talk.wire.messages(Assistant) if m.parent_tool_use_id]
        # What a subagent did is stored too, but is no session of its own.
        stored = bridle.list_sessions(lab.cwd, lab.config_dir)
        assert [session.id for session in stored] == [talk.session.id]
        in_background = bool(talk.wire.messages(TaskNotification))
        assert in_background is not lab.is_old
        lab.saw(
            "in the background, then a turn of its own" if in_background else "in the foreground"
        )


async def test_gate_of_a_subagent(lab: Lab) -> None:
    """The gate sees a subagent's calls, also in the background after the turn's end"""
    judge, hold = Judge(Deny("not for you")), Hold()
    command = tool_use("Bash", command="echo hi > child.txt", description="make")
    child = Conversation(
        [Turn(hold, "Child works.", command), Turn("It may not.")],
        when=says("the child's task"),
    )
    parent = _parent(lab, "general-purpose")
    async with lab.session(parent, child, approver=judge, policy="ask") as talk:
        await _delegate(lab, talk, hold)
        assert judge.tools == ["Bash"]
        assert not lab.exists("child.txt")


async def test_own_agent(lab: Lab) -> None:
    """A subagent that was given to the session: it works by its own system prompt"""
    agents = {"poet": bridle.Agent(description="writes", prompt="You write verse only.")}
    hold = Hold()
    verse = Turn(hold, "Roses are red.")
    child = Conversation([verse], when=says("the child's task"))
    async with lab.session(_parent(lab, "poet"), child, agents=agents) as talk:
        await _delegate(lab, talk, hold)
        (asked,) = (r for r in talk.model.requests if "You write verse only." in r.system)
        assert asked.prompt.endswith("the child's task")


def _parent(lab: Lab, kind: str) -> Conversation:
    task = tool_use(
        "Task" if lab.is_old else "Agent",
        description="sub work",
        prompt="the child's task",
        subagent_type=kind,
    )
    return Conversation([Turn("Delegating.", task)], then="Parent is done.")


async def _delegate(lab: Lab, talk: Talk, hold: Hold) -> None:
    """Have the child do its work, to the end of the last turn that comes of it."""
    if lab.is_old:
        hold.release()
        assert (await talk.say("delegate")).result.result == "Parent is done."
        return
    # The prompt's own turn ends first; when the child is done, a turn comes that nobody prompted.
    unprompted = talk.session.unprompted()
    awaited = asyncio.ensure_future(anext(unprompted))
    assert (await talk.say("delegate")).result.origin is None
    hold.release()
    turn = await asyncio.wait_for(awaited, LIMIT_SECONDS)
    assert (await hear(turn)).result.result == "Parent is done."
    assert (turn.uuid, turn.origin) == (None, "task-notification")


async def test_half_a_character(lab: Lab) -> None:
    """A character that the CLI cut in two, at the end of a long output"""
    # One unit, then pairs: a cut at any even length falls between the halves of one.
    script = "import sys; sys.stdout.buffer.write(('x' + chr(0x1F40E) * 40000).encode())"
    command = tool_use("Bash", command=f'python3 -c "{script}"', description="many horses")
    async with lab.session([Turn(command), "Done."], approver=Judge()) as talk:
        await talk.say("run")
        halves = sum(b"\\ud83d" in line for line in talk.wire.received)
        assert bool(halves) is lab.is_old
        assert talk.session.counters.repaired == halves
        assert talk.session.counters.malformed == 0
        lab.saw("a lone half, as an escape" if halves else "not cut in two")
