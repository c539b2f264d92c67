"""Rules that would allow a call the next time: the narrowest first. What "always" would add."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..errors import InvalidRule
from ..protocol.permissions import AddRules, PermissionRule, PermissionUpdate
from .paths import is_inside, place
from .policy import Policy
from .rules import host_of
from .shell.programs import read_commands
from .tools import EDITS, FETCH, NAMED, PLAN, QUESTION, READS, SHELL
from .verdicts import Allowed, Behavior, Call, Denied, Ground

#: Programs whose second word says what they do: a rule for all of them would be too wide.
_WITH_COMMANDS = frozenset(
    (
        *("git", "npm", "pnpm", "yarn", "bun", "cargo", "go", "docker", "kubectl", "pip", "uv"),
        *(
            "make",
            "poetry",
            "gh",
            "brew",
            "apt",
            "systemctl",
            "dotnet",
            "mvn",
            "gradle",
            "terraform",
        ),
    )
)
_WORD = re.compile(r"[A-Za-z0-9_.:@/+-]+")
MAX_TEXT = 2_000


def suggest(
    call: Call,
    ground: Ground,
    updates: Iterable[PermissionUpdate | object] = (),
    policy: Policy | None = None,
) -> list[str]:
    """Candidates, each a rule that would allow this very call beside those of the policy; the
    CLI's own ones last."""
    found = [*_own(call, ground), *_of_cli(updates)]
    return [text for text in dict.fromkeys(found) if covers(text, "allow", call, ground, policy)]


def _own(call: Call, ground: Ground) -> list[str]:
    tool = call.tool
    if tool == SHELL:
        return _commands(call.input.get("command"))
    if tool in READS or tool in EDITS:
        return _paths(call, ground)
    if tool == FETCH:
        host = host_of(call.input.get("url"))
        return [f"{FETCH}(domain:{host})"] if host else []
    if tool in NAMED:
        name = call.input.get(NAMED[tool])
        return [f"{tool}({name})"] if isinstance(name, str) and name else [tool]
    if tool in (PLAN, QUESTION):
        return []  # these are for a person each time
    return [tool]


def _commands(command: object) -> list[str]:
    if not isinstance(command, str) or not command.strip() or len(command) > MAX_TEXT:
        return []
    text = command.strip()
    found = [f"{SHELL}({_escaped(text)})"] if "*" not in text and '"' not in text else []
    commands = read_commands(text)
    if commands.unclear or len(commands.programs) != 1:
        return found
    program = commands.programs[0]
    while program.is_clear and len(program.inner) == 1:
        program = program.inner[0]
    words: list[str] = []
    for word in program.argv[:2]:
        if word is None or not _WORD.fullmatch(word) or (words and word.startswith("-")):
            break
        words.append(word)
    if words and (words[0] in _WITH_COMMANDS or program.inner) and len(words) == 2:
        found.append(f"{SHELL}({' '.join(words)}:*)")
    elif words and words[0] not in _WITH_COMMANDS:
        found.append(f"{SHELL}({words[0]}:*)")
    return found


def _paths(call: Call, ground: Ground) -> list[str]:
    path = call.input.get(READS.get(call.tool) or EDITS[call.tool])
    if not isinstance(path, str) or not path or re.search(r"[*?\[\]()\n]", path):
        return []
    where = place(path, call.cwd or ground.folder, ground)
    tool = "Edit" if call.tool in EDITS else "Read"
    found = []
    for form in dict.fromkeys((where.written, where.real)):
        folder = form.rpartition("/")[0]
        if is_inside(form, ground.folder) and form != ground.folder:
            inside = len(ground.folder.rstrip("/"))
            found += [f"{tool}({form[inside:]})", f"{tool}({folder[inside:]}/**)"]
        else:
            found.append(f"{tool}(/{form})")
            # Not a rule for the whole disk, or for all that is at home.
            found += [f"{tool}(/{folder}/**)"] if folder not in ("", ground.home) else []
    return found


def _of_cli(updates: Iterable[PermissionUpdate | object]) -> list[str]:
    found = []
    for update in updates:
        if isinstance(update, AddRules) and update.behavior == "allow":
            found += [text_of(rule) for rule in update.rules]
    return found


def text_of(rule: PermissionRule) -> str:
    """A rule of the CLI's as it is written in a policy."""
    content = rule.rule_content
    has_content = isinstance(content, str) and content
    return f"{rule.tool_name}({content})" if has_content else rule.tool_name


def _escaped(text: str) -> str:
    return re.sub(r"([()\\])", r"\\\1", text)


def covers(
    text: str, behavior: Behavior, call: Call, ground: Ground, policy: Policy | None = None
) -> bool:
    """Whether it is a rule, and enough to allow or deny this call beside those of the policy. (Of
    what is guarded a person is asked all the same.)"""
    rules, has_guard = (policy.rules, policy.has_guard) if policy else ((), True)
    try:
        if behavior == "deny":
            denying = Policy("autonomous", deny=[text], has_guard=False)
            return isinstance(denying.on(ground).judge(call), Denied)
        allowing = Policy("ask", allow=[text], has_guard=has_guard, rules=rules)
        return isinstance(allowing.on(ground).judge(call), Allowed)
    except InvalidRule:
        return False
