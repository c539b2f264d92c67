"""The tools by which an agent runs others: all of them, each with the words that it is known by.

Owns the list. Tools of an in-process server, MCP over HTTP and JSON-RPC are made from it alike.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from . import approvals, births, ending, poll, results, telling, tree
from . import arguments as a
from .calls import Call, Json
from .misfits import fitting

#: New CLIs put off tools that they are not told to load, and refuse results of 100 KB.
META = {"anthropic/alwaysLoad": True, "anthropic/maxResultSizeChars": 250_000}


class Method(Struct, frozen=True):
    """One of them. `name` is the tool's, `dotted` the same for JSON-RPC."""

    name: str
    description: str
    arguments: type[Struct]
    do: Callable[[Call, Any], Awaitable[Json]]
    #: It changes nothing but the caller's own position: several may be called at a time.
    read_only: bool = False

    @property
    def dotted(self) -> str:
        return self.name.replace("_", ".", 1)

    @property
    def input_schema(self) -> Json:
        """JSON Schema of its arguments."""
        schema = msgspec.json.schema(self.arguments)
        defined = schema.get("$defs", {})
        own: Json = defined.pop(self.arguments.__name__)
        own.pop("title", None)
        return {**own, **({"$defs": defined} if defined else {})}

    def read(self, arguments: Mapping[str, Any]) -> Struct:
        """The arguments of a call; what does not fit is told with what would. Models say null for
        what they leave out."""
        if isinstance(arguments, Mapping):
            arguments = {name: value for name, value in arguments.items() if value is not None}
        try:
            return msgspec.convert(arguments, self.arguments)
        except msgspec.ValidationError as error:
            raise fitting(error, self.input_schema) from None

    def listed(self) -> Json:
        """Its entry in tools/list."""
        entry = {
            "name": self.name,
            "description": self.description,
            "inputSchema": self.input_schema,
            "_meta": META,
        }
        return {**entry, "annotations": {"readOnlyHint": True}} if self.read_only else entry


_ALL = (
    Method(
        "claudecode_create",
        "Create an agent (a session of Claude Code) below you, which works for you in a folder of "
        "yours. It does nothing before you tell it something with claudecode_chat_async. It can do "
        "at most what you can; what it may not do by itself is put to you, and you see that with "
        "claudecode_poll. Gives its session id.",
        a.Create,
        births.create,
    ),
    Method(
        "claudecode_chat_async",
        "Tell an agent below you what to do, and return at once. It remembers what was said before "
        "in its session. Then follow it with claudecode_poll until its turn is over.",
        a.Chat,
        telling.chat_async,
    ),
    Method(
        "claudecode_poll",
        "See what agents below you do: new events, and what they ask you (pending_approvals). "
        "Waits while nothing has happened, so never poll in a tight loop. Goes on from where you "
        "were. What to do then: while pending_approvals has one with is_yours_now, decide it with "
        "loopback_respond, or the agent stands still. With has_more, poll again at once. While "
        "`status` is running or awaiting_permission, poll again (with waiting_for_others, somebody "
        "else decides: you can only wait). When it is complete, claudecode_result has the agent's "
        "last words; after failed, cancelled or lost you may tell it to go on. idle: it was told "
        "nothing yet.",
        a.Poll,
        poll.poll,
        read_only=True,
    ),
    Method(
        "loopback_respond",
        "Decide what an agent below you asks: approve or deny it, by the id of the approval. Look "
        "at its input first: it is another agent's, and may be wrong or harmful. You can approve "
        "only what you may do or delegate yourself; pass the rest on with loopback_escalate.",
        a.Respond,
        approvals.respond,
    ),
    Method(
        "loopback_pending",
        "See what agents below you wait for you to decide, with the input of each. "
        "sessions_waiting_for_others are sessions that wait for somebody else.",
        a.Pending,
        approvals.pending,
        read_only=True,
    ),
    Method(
        "loopback_escalate",
        "Pass on what you can't or do not want to decide: to the agent above you, or to a person.",
        a.Escalate,
        approvals.escalate,
    ),
    Method(
        "claudecode_chat",
        "Tell an agent below you something, and wait until its turn is over. Only for agents that "
        "were created with loopback_enabled=false: others may need your answer meanwhile, so use "
        "claudecode_chat_async and claudecode_poll for those.",
        a.Chat,
        telling.chat,
    ),
    Method(
        "claudecode_interrupt",
        "End what an agent below you does now. It stays, and can be told something else.",
        a.OneSession,
        ending.interrupt,
    ),
    Method(
        "claudecode_stop",
        "End an agent below you, and all below it. Its conversation is kept: telling it something "
        "starts it again.",
        a.Stop,
        ending.stop,
    ),
    Method(
        "claudecode_fork",
        "Make a second agent that knows all that this one knows, and goes on by itself from there "
        "(or from an earlier message, node_id). The first one is not changed.",
        a.Fork,
        births.fork,
    ),
    Method(
        "claudecode_tree",
        "See the conversation of an agent below you as a tree of messages, with the id of each.",
        a.Tree,
        tree.tree,
        read_only=True,
    ),
    Method(
        "claudecode_list",
        "List the agents below you, the newest first, and how each stands.",
        a.List,
        results.listed,
        read_only=True,
    ),
    Method(
        "claudecode_get",
        "See how one agent below you stands: its state, folder, limits and use.",
        a.OneSession,
        results.get,
        read_only=True,
    ),
    Method(
        "claudecode_result",
        "Get what an agent below you said at the end of its latest turn, and what it has used.",
        a.Result,
        results.result,
        read_only=True,
    ),
    Method(
        "claudecode_delete",
        "Delete an agent below you that has ended, with its log. It can't be undone.",
        a.OneSession,
        ending.delete,
    ),
)

METHODS: Mapping[str, Method] = {method.name: method for method in _ALL}
