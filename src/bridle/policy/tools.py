"""The CLI's tools as a policy sees them: what kind each is, and where its input has its path."""

from __future__ import annotations

from typing import Literal, TypeAlias

#: What a call is about. The presets are tables of these.
Kind: TypeAlias = Literal[
    "read",
    "bookkeeping",
    "edit",
    "edit elsewhere",
    "reading command",
    "command",
    "web",
    "mcp",
    "question",
    "plan",
    "other",
]

SHELL = "Bash"
FETCH = "WebFetch"
QUESTION = "AskUserQuestion"
PLAN = "ExitPlanMode"

#: Which field of the input has the path.
READS = {
    "Read": "file_path",
    "NotebookRead": "notebook_path",
    "Glob": "path",
    "Grep": "path",
    "LS": "path",
}
EDITS = {
    "Edit": "file_path",
    "MultiEdit": "file_path",
    "Write": "file_path",
    "NotebookEdit": "notebook_path",
}
#: The agent's own notes and what it has to say at the end, its subagents (whose calls are judged by
#: themselves), and looking at, or ending, what was allowed before.
BOOKKEEPING = frozenset(
    (
        *("Task", "Agent", "TodoWrite", "TodoRead", "EnterPlanMode", "ToolSearch", "MCPSearch"),
        *("TaskCreate", "TaskGet", "TaskList", "TaskUpdate", "TaskOutput", "BashOutput"),
        *("TaskStop", "KillShell", "KillBash", "ListMcpResourcesTool", "ListAgents", "CronList"),
        *("StructuredOutput", "ReportFindings"),
    )
)
#: Each of these does what no kind is about, and is judged as a tool that nobody knows: it runs
#: commands or agents by itself, at other times or elsewhere, or speaks to others.
OTHERS = frozenset(
    (
        *("CronCreate", "CronDelete", "EnterWorktree", "ExitWorktree", "LSP", "Monitor"),
        *("ReadMcpResourceTool", "ScheduleWakeup", "SendMessage", "Workflow"),
    )
)
#: A rule's content is a name here, in the input's field.
NAMED = {
    "Task": "subagent_type",
    "Agent": "subagent_type",
    "Skill": "skill",
    "SlashCommand": "command",
}
COMMAND = "SlashCommand"
#: The CLI puts a file in the place of these, with commands in it that it runs.
SUBAGENTS = ("Task", "Agent")
EXPANDED = {name: NAMED[name] for name in ("Skill", COMMAND, *SUBAGENTS)}
WEB = frozenset((FETCH, "WebSearch"))

#: Tools that have two names, by version.
ALIASES = {"Task": ("Task", "Agent"), "Agent": ("Task", "Agent")}

KNOWN = frozenset(
    (
        *(SHELL, QUESTION, PLAN),
        *(*READS, *EDITS, *BOOKKEEPING, *NAMED, *WEB, *OTHERS),
    )
)


def kind_of(tool: str) -> Kind:
    """What kind a tool is by its name alone; where an edit is, and what a command does, is more."""
    if tool in READS:
        return "read"
    if tool in EDITS:
        return "edit"
    if tool == SHELL:
        return "command"
    if tool in BOOKKEEPING:
        return "bookkeeping"
    if tool in WEB:
        return "web"
    if tool.startswith("mcp__"):
        return "mcp"
    return {QUESTION: "question", PLAN: "plan"}.get(tool, "other")  # type: ignore[return-value]
