"""One turn to look at: a real CLI, a scripted model, one approval. No account, no network.

python -m bridle.testing.demo [--version VERSION] [--deny] [--record FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import io
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from ..errors import BridleError
from ..process.recording import Recorder
from ..protocol.blocks import Block, TextBlock, ToolResultBlock, ToolUseBlock
from ..protocol.capabilities import TESTED_VERSIONS
from ..protocol.content import Text, tool_output
from ..protocol.control import CanUseTool
from ..protocol.events import MessageReceived, RequestReceived
from ..protocol.messages import Assistant, Result, User
from ..protocol.permissions import Allow, Decision, Deny
from ..protocol.requests import Initialize
from .install import InstalledCli, install_cli
from .model import ScriptedModel
from .pipe import PipedCli
from .script import Turn, tool_use

PROMPT = "Say hello in a file."
COMMAND = "touch greeting.txt && echo 'Hello from a bridled agent.' > greeting.txt"
SCRIPT: list[Turn | str] = [
    Turn(
        "I will write the greeting.",
        tool_use("Bash", command=COMMAND, description="Write a greeting"),
    ),
    "That is all I wanted to do.",
]


def say(who: str, words: str) -> None:
    sys.stdout.write(f"{who:>9} │ {words}\n")
    sys.stdout.flush()


def show(message: object) -> None:
    if isinstance(message, Assistant | User) and not isinstance(message.message.content, str):
        for block in message.message.content:
            show_block(block)
    elif isinstance(message, Result):
        say("result", f"{message.subtype}, {message.num_turns} turns")


def show_block(block: Block) -> None:
    match block:
        case TextBlock():
            say("agent", block.text)
        case ToolUseBlock():
            say("agent", f"wants {block.name}: {block.input.get('command', block.input)}")
        case ToolResultBlock():
            output = tool_output(block)
            words = output.text if isinstance(output, Text) else type(output).__name__
            say("tool", words or "(no output)")


async def watch(child: PipedCli, decision: Decision) -> None:
    """Show what the agent says as it comes, and decide what it asks, to the end of the turn."""
    while True:
        event = await child.expect(lambda _: True)
        if isinstance(event, RequestReceived) and isinstance(event.request, CanUseTool):
            asked = f"asked whether {event.request.tool_name} may run"
            say("bridle", f"{asked}: {'allowed' if isinstance(decision, Allow) else 'denied'}")
            child.answer(event, decision)
        elif isinstance(event, MessageReceived):
            show(event.message)
            if isinstance(event.message, Result):
                return


async def demo(cli: InstalledCli, decision: Decision, record: Path | None) -> bool:
    """Whether the tool ran, which is to be whether it was allowed."""
    with tempfile.TemporaryDirectory(prefix="bridle-demo-") as folder, ExitStack() as stack:
        work = Path(folder) / "work"
        work.mkdir()
        recorder = stack.enter_context(Recorder(record)) if record else None
        async with (
            ScriptedModel(SCRIPT) as model,
            PipedCli(
                cli,
                env=model.environment(Path(folder) / "home"),
                cwd=work,
                recorder=recorder,
            ) as child,
        ):
            await child.ask(Initialize())
            say("you", PROMPT)
            child.prompt(PROMPT)
            await watch(child, decision)
        greeting = work / "greeting.txt"
        say("file", greeting.read_text().strip() if greeting.exists() else "was not written")
        return greeting.exists()


def main() -> int:
    parser = argparse.ArgumentParser(prog="bridle.testing.demo", description=__doc__.split("\n")[0])
    newest = TESTED_VERSIONS[-1]
    parser.add_argument("--version", default=newest, help="of Claude Code (default: %(default)s)")
    parser.add_argument("--deny", action="store_true", help="deny the tool instead of allowing it")
    parser.add_argument("--record", type=Path, metavar="FILE", help="keep the wire in this file")
    options = parser.parse_args()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    try:
        cli = install_cli(options.version, tell=lambda words: say("bridle", words))
        say("bridle", f"Claude Code {cli.version} against a scripted model on 127.0.0.1")
        decision = Deny("The demo was started with --deny.") if options.deny else Allow()
        ran = asyncio.run(demo(cli, decision, options.record))
    except BridleError as error:
        sys.stderr.write(f"bridle: {error}\n")
        return 1
    except BrokenPipeError:
        # Whoever read what we say has gone; there is nobody to tell.
        sys.stderr.close()
        return 1
    return 0 if ran is not options.deny else 1


if __name__ == "__main__":
    sys.exit(main())
