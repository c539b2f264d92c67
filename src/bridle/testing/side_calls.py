"""What a CLI asks a model beside the conversation, and what answers it: a table.

Such calls come at any time and in any number, so they use up no turn of a script. They offer the
model no tools; that alone does not mark them, because a session may be started without tools.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from .model_request import ModelRequest
from .script import Turn


class SideCall(Struct, frozen=True):
    name: str
    is_it: Callable[[ModelRequest], bool]
    answer: str


SIDE_CALLS = (
    SideCall("quota probe", lambda r: r.body.get("max_tokens") == 1, "ok"),
    SideCall("subagent warm-up (2.0)", lambda r: r.prompt.strip() == "Warmup", "Ready."),
    SideCall("command prefix (2.0)", lambda r: "<policy_spec>" in r.prompt, "none"),
    SideCall(
        "paths of a command (2.0)",
        lambda r: "Extract any file paths that this command reads or modifies" in r.system,
        "<is_displaying_contents>false</is_displaying_contents>",
    ),
    SideCall(
        "files of a repository (2.0)", lambda r: r.prompt.startswith("Files modified by user:"), ""
    ),
    SideCall(
        "topic (2.0)",
        lambda r: "isNewTopic" in r.system,
        '{"isNewTopic": false, "title": null}',
    ),
    SideCall(
        "session title",
        lambda r: "title" in r.system.lower()[:2000] and '"title"' in r.system,
        '{"title": "Scripted session"}',
    ),
)


def answer_side_call(request: ModelRequest) -> Turn | None:
    """The answer to a side call; None where the request belongs to a conversation."""
    if request.tools:
        return None
    for call in SIDE_CALLS:
        if call.is_it(request):
            return Turn(call.answer)
    return None
