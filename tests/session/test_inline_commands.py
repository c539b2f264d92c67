"""Commands that skills and slash commands run by themselves are judged before one is used."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridle.errors import InvalidRequest
from bridle.policy import Call, Policy
from bridle.process.spec import LaunchSpec
from bridle.protocol.blocks import TextBlock
from bridle.session.ground import ground_of
from bridle.session.inline_commands import MAX_FILES, InlineCommands, check_prompt
from bridle.session.policies import in_force
from tests.policy.grounds import told

from .conftest import StartSession

BODY = "---\ndescription: x\n---\nIt is !`git log -3`:\n\n```!\nrm x\n```\n"


def put(folder: Path, name: str, text: str = BODY) -> None:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work/sub").mkdir(parents=True)
    return tmp_path / "work"


def look(work: Path) -> InlineCommands:
    also, plugins = (str(work.parent / "o"),), (str(work.parent / "plugin"),)
    return InlineCommands(str(work / "sub"), str(work.parent / "claude"), also, plugins)


@pytest.mark.parametrize(
    "file",
    [
        "claude/commands/x.md",
        "claude/commands/deep/x.md",
        "claude/skills/x/SKILL.md",
        "claude/skills/other/SKILL.md",
        "claude/plugins/cache/m/p/1/skills/x/SKILL.md",
        "claude/plugins/cache/m/p/1/commands/x.md",
        "work/.claude/commands/x.md",
        "work/sub/.claude/skills/x/SKILL.md",
        "o/.claude/skills/X/skill.md",
        "work/sub/deep/.claude/skills/x/SKILL.md",
        "plugin/skills/x/SKILL.md",
        "plugin/commands/x.md",
    ],
)
def test_commands_are_found_wherever_the_cli_may_take_them_from(file: str, work: Path) -> None:
    text = BODY.replace("description: x", 'description: x\nname: "x"') if "other" in file else BODY
    put(work.parent, file, text)
    for name in ("x", "p:x", "X", " x", "x\n", " /x"):
        assert look(work)(name) == ("git log -3", "\nrm x\n")
    assert look(work)("y") is None


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("!`git show $1`", "x; touch y"),
        ("!`git show $ARGUMENTS`", "x"),
        ("!`git show ${name}`", "x"),
        ("Now: !$ARGUMENTS", "`touch y`"),
        ("plain", "!`touch y`"),
        ("plain", "```!\ntouch y\n```"),
        ("!`never closed", ""),
        ("```!\nnever closed", ""),
    ],
)
def test_what_cannot_be_known_is_not_taken_for_nothing(
    text: str, arguments: str, work: Path
) -> None:
    put(work.parent, "claude/commands/x.md", text)
    assert look(work)("x", arguments) is None


def test_a_name_is_looked_for_as_a_whole_and_by_its_end(work: Path) -> None:
    put(work.parent, "claude/skills/a:x/SKILL.md")
    assert look(work)("a:x") == ("git log -3", "\nrm x\n")
    put(work.parent, "claude/skills/q/SKILL.md", BODY.replace("description", '"name"'))
    assert look(work)("x") == ("git log -3", "\nrm x\n")


def test_skills_below_are_found_in_each_folder_and_behind_links(work: Path) -> None:
    for number, name in enumerate(("a", "b", "c/d")):
        text = BODY.replace("git log -3", f"git log -{number}")
        put(work, f"sub/{name}/.claude/skills/x/SKILL.md", text)
    found = look(work)("x")
    assert found
    assert {"git log -0", "git log -1", "git log -2"} <= set(found)
    put(work, "sub/node_modules/p/.claude/skills/y/SKILL.md")
    put(work, "sub/.hidden/p/.claude/skills/y/SKILL.md")
    assert look(work)("y") is None
    put(work.parent, "elsewhere/y/SKILL.md")
    (work.parent / "claude/skills").mkdir(parents=True)
    (work.parent / "claude/skills/linked").symlink_to(work.parent / "elsewhere")
    assert look(work)("y") == ("git log -3", "\nrm x\n")


@pytest.mark.parametrize(("count", "is_known"), [(MAX_FILES - 1, True), (MAX_FILES, False)])
def test_a_folder_is_looked_at_up_to_so_many_files(
    work: Path, count: int, is_known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridle.session.inline_commands.MAX_FILES", 4)
    put(work.parent, "claude/plugins/x.md")
    for number in range(count - MAX_FILES + 3):
        put(work.parent, f"claude/plugins/{number}")
    assert (look(work)("x") is not None) is is_known


def test_too_much_to_look_at_is_not_taken_for_nothing(work: Path) -> None:
    folder = work.parent / "claude/plugins/many"
    folder.mkdir(parents=True)
    for number in range(MAX_FILES + 1):
        (folder / str(number)).touch()
    assert look(work)("x") is None


def judged(work: Path, policy: Policy, call: Call) -> str:
    ground = ground_of(work, claude_home=str(work.parent / "claude"), bridle_home=str(work / ".b"))
    return told(policy.on(ground).judge(call))


SKILL, SLASH = Call("Skill", {"skill": "x"}), Call("SlashCommand", {"command": "/x a b"})


@pytest.mark.parametrize("call", [SKILL, SLASH])
@pytest.mark.parametrize(
    ("command", "policy", "expected"),
    [
        ("git log", Policy("edits", allow=["Skill", "SlashCommand"]), "allow"),
        ("touch x", Policy("edits", allow=["Skill", "SlashCommand"]), "ask"),
        ("touch x", Policy("edits", allow=["Skill", "SlashCommand", "Bash(touch:*)"]), "allow"),
        ("touch x", Policy("autonomous"), "allow"),
        ("touch x", Policy("autonomous", deny=["Bash(touch:*)"]), "deny"),
        ("touch x", Policy("edits", deny=["Skill", "SlashCommand"]), "deny"),
        ("touch x", Policy("plan", allow=["Skill", "SlashCommand"]), "deny"),
        ("touch .git/config", Policy("autonomous"), "guard"),
    ],
)
def test_a_skill_may_do_no_more_than_its_commands(
    command: str, policy: Policy, expected: str, call: Call, work: Path
) -> None:
    put(work.parent, "claude/commands/x.md", f"So: !`{command}`")
    assert judged(work, policy, call) == expected


def test_a_skill_that_is_not_found_is_asked_about(work: Path) -> None:
    for policy in (Policy("edits", allow=["Skill"]), Policy("autonomous")):
        assert judged(work, policy, Call("Skill", {"skill": "unknown"})) == "ask"


@pytest.mark.parametrize("skills", ["skills: x", "skills: [y, x]", "skills:\n  - y\n  - x"])
def test_a_subagent_may_do_no_more_than_the_skills_that_it_begins_with(
    skills: str, work: Path
) -> None:
    put(work.parent, "claude/agents/a.md", f"---\nname: a\n{skills}\n---\nGo.\n")
    put(work.parent, "claude/skills/x/SKILL.md", "So: !`touch x`")
    put(work.parent, "claude/skills/y/SKILL.md", "So.")
    call = Call("Agent", {"subagent_type": "a", "prompt": "go"})
    assert judged(work, Policy("edits"), call) == "ask"
    assert judged(work, Policy("autonomous", deny=["Bash(touch:*)"]), call) == "deny"
    assert judged(work, Policy("autonomous"), call) == "allow"
    other = Call("Task", {"subagent_type": "general-purpose", "prompt": "go"})
    assert judged(work, Policy("edits"), other) == "allow"


def test_arguments_that_mention_a_file_are_asked_about(work: Path) -> None:
    put(work.parent, "claude/skills/x/SKILL.md", "Look.")
    policy = Policy("edits", allow=["Skill"], deny=["Read(secret)"])
    call = Call("Skill", {"skill": "x", "args": "look at @secret"})
    assert judged(work, policy, call) == "deny"
    other = Call("Skill", {"skill": "x", "args": "look at @README"})
    assert judged(work, policy, other) == "ask"
    assert judged(work, policy, Call("Skill", {"skill": "x", "args": "look"})) == "allow"
    assert judged(work, policy, Call("Skill", {"skill": "x", "args": 5})) == "ask"


@pytest.mark.parametrize("blocks", [False, True])
def test_a_person_may_use_a_slash_command_that_no_rule_forbids(work: Path, blocks: bool) -> None:
    put(work.parent, "claude/commands/x.md", "So: !`touch $1`")
    ground = ground_of(work, claude_home=str(work.parent / "claude"))
    prompt: object = [TextBlock("see"), TextBlock(" /x a b")] if blocks else "/x a b"
    check_prompt(prompt, ground, Policy("ask").on(ground).judge)
    check_prompt("touch /x", ground, Policy("read-only").on(ground).judge)
    for policy in (Policy("read-only"), Policy("autonomous", deny=["Bash(touch:*)"])):
        with pytest.raises(InvalidRequest, match=r"/x runs `touch \$1` by itself, and "):
            check_prompt(prompt, ground, policy.on(ground).judge)


async def test_a_session_sends_no_slash_command_that_a_rule_forbids(
    start: StartSession, tmp_path: Path
) -> None:
    put(tmp_path, "work/.claude/commands/x.md", "So: !`rm a`")
    policy = in_force(Policy("edits", deny=["Bash(rm:*)"]), LaunchSpec(cwd=tmp_path / "work"))
    session, cli = await start(policy=policy)
    with pytest.raises(InvalidRequest, match="by itself"):
        await session.send("/x")
    assert cli.prompts() == []
    await session.send("what is /x?")
    assert len(cli.prompts()) == 1
