"""Patterns for commands: words, not text."""

from __future__ import annotations

import pytest

from bridle.errors import InvalidRule
from bridle.policy import Policy
from bridle.policy.commands import CommandPattern

from .grounds import GROUND, bash, told


@pytest.mark.parametrize(
    ("pattern", "argv", "is_match"),
    [
        ("npm run test:*", ("npm", "run", "test"), True),
        ("npm run test:*", ("npm", "run", "test", "--", "x"), True),
        ("npm run test:*", ("npm", "run", "tests"), False),
        ("npm run test:*", ("npm", "run"), False),
        ("git diff *", ("git", "diff"), True),
        ("git diff *", ("git", "diff", "a", "b"), True),
        ("git diff *", ("git", "difftool"), False),
        ("git status", ("git", "status"), True),
        ("git status", ("git", "status", "-s"), False),
        ("git * main", ("git", "push", "main"), True),
        ("git * main", ("git", "push", "origin", "main"), True),
        ("git * main", ("git", "main"), True),
        ("git * main", ("git", "push", "main", "x"), False),
        ("* --version", ("node", "--version"), True),
        ("* --version", ("node", "--version", "x"), False),
        ("npm run test*", ("npm", "run", "test:unit"), True),
        ("npm run test*", ("npm", "run", "build"), False),
        ("ls*", ("lsof",), True),
        ("echo 'a b':*", ("echo", "a b"), True),
        ("echo 'a b':*", ("echo", "a", "b"), False),
        ('echo "a b"', ("echo", "a b"), True),
        ("git\tdiff   x", ("git", "diff", "x"), True),
        ("ls", ("LS",), False),
        ("a.c", ("abc",), False),
        ("echo ab*ba", ("echo", "abba"), True),
        ("echo ab*ba", ("echo", "aba"), False),
        ("a*c x", ("abc", "x"), True),
        ("a*c x", ("a\nc", "x"), True),
    ],
)
def test_a_pattern_matches_by_words(pattern: str, argv: tuple[str, ...], is_match: bool) -> None:
    assert CommandPattern(pattern).matches(argv) is is_match


@pytest.mark.parametrize("pattern", ["", "  ", ":*", " :*", "a:*b", "a:* b", "echo 'x", 'echo "x'])
def test_a_wrong_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidRule):
        CommandPattern(pattern)


def test_an_unknown_word_is_matched_by_a_wildcard_only() -> None:
    assert CommandPattern("ls:*").matches(("ls", None))
    assert CommandPattern("git * main").matches(("git", None, "main"))
    assert not CommandPattern("git push:*").matches(("git", None))
    assert not CommandPattern("git status").matches(("git", "status", None))


def test_in_doubt_an_unknown_word_may_be_several_or_none() -> None:
    pattern = CommandPattern("git push origin")
    assert pattern.may_match(("git", None))
    assert pattern.may_match(("git", None, "origin"))
    assert pattern.may_match(("git", "push", "origin", None))
    assert not pattern.may_match(("git", "pull", None))
    assert not pattern.may_match(("git", "pull"))


def test_a_denial_sees_a_program_by_its_path_and_an_allowance_does_not() -> None:
    call = bash("/bin/rm x")
    assert told(Policy("autonomous", deny=["Bash(rm:*)"]).on(GROUND).judge(call)) == "deny"
    assert told(Policy(allow=["Bash(rm:*)"]).on(GROUND).judge(call)) == "ask"


@pytest.mark.parametrize(
    ("rule", "command", "expected"),
    [
        ("Bash(timeout 5 docker ps:*)", "timeout 5 docker ps -a", "allow"),
        ("Bash(timeout:*)", "timeout 5 docker ps", "ask"),
        ("Bash(sudo:*)", "sudo docker ps", "ask"),
        ("Bash(sudo docker ps:*)", "sudo docker ps", "allow"),
        ("Bash(xargs:*)", "xargs docker", "ask"),
        ("Bash(xargs wc:*)", "xargs wc -l", "allow"),
        ("Bash(bash:*)", "bash -c 'docker ps'", "ask"),
        ("Bash(bash:*)", "bash build.sh", "allow"),
        ("Bash(find:*)", "find . -exec docker {} +", "ask"),
        ("Bash(git -C ../x status)", "git -C ../x status", "allow"),
        ("Bash(git status)", "git -C ../x status", "ask"),
        ("Bash(git -C:*)", "git -C ../x status", "ask"),
        ("Bash(./nice:*)", "./nice make", "ask"),
        ("Bash(./nice make)", "./nice make", "allow"),
        ("Bash(docker:*)", "docker run x sh -c 'rm y'", "allow"),
        ("Bash(cd /tmp && ls)", "cd /tmp && ls", "allow"),
        ("Bash(cd /tmp && ls)", "cd /tmp && ls -la", "ask"),
        ("Bash(cd /tmp && ls)", "cd /tmp && ls; id", "ask"),
        ("Bash(cd:*)", "cd /tmp", "allow"),
        ("Bash(echo \\(x\\))", "echo '(x)'", "allow"),
        ("Bash(./build.sh:*)", "./build.sh x", "allow"),
        ("Bash(./build.sh:*)", "build.sh x", "ask"),
        ("Bash(build.sh:*)", "./build.sh x", "ask"),
        ("Bash(FOO=1 npm test)", "FOO=1 npm test", "allow"),
        ("Bash(FOO=1 npm test)", "FOO=1 npm test x", "ask"),
    ],
)
def test_a_rule_for_a_wrapper_speaks_of_what_it_names(
    rule: str, command: str, expected: str
) -> None:
    assert told(Policy(allow=[rule]).on(GROUND).judge(bash(command))) == expected


@pytest.mark.parametrize(
    ("deny", "command", "expected"),
    [
        ("Bash(npm publish:*)", "npm publish", "deny"),
        ("Bash(npm publish:*)", "npm $x", "ask"),
        ("Bash(npm publish:*)", "npm install $x", "allow"),
        ("Bash(* --force)", "docker x --force", "deny"),
        ("Bash(* --force)", "docker $x", "ask"),
        ("Bash(git push * main)", "git push origin main", "deny"),
        ("Bash(git push * main)", "git push origin other", "allow"),
        ("Bash(git push * main)", "git -c a.b=c push origin main", "deny"),
        ("Bash(sudo:*)", "env sudo ls", "deny"),
        ("Bash(env:*)", "env ls", "deny"),
        ("Bash(find . -delete)", "find . -delete", "deny"),
        ("Bash(sh -c:*)", "sh -c ls", "deny"),
        ("Bash(git push && ls)", "git push && ls", "deny"),
    ],
)
def test_a_denial_holds_under_a_rule_for_the_whole_shell(
    deny: str, command: str, expected: str
) -> None:
    policy = Policy(allow=["Bash"], deny=[deny])
    assert told(policy.on(GROUND).judge(bash(command))) == expected


def test_compounds_one_after_another_are_not_nested() -> None:
    judge = Policy(allow=["Bash(docker:*)"]).on(GROUND)
    each = ("(docker ps)", "{ docker ps; }", "if docker ps; then docker ps; fi")
    found = {one: told(judge.judge(bash("\n".join([one] * 60)))) for one in each}
    assert found == dict.fromkeys(each, "allow")
    assert told(judge.judge(bash("( " * 60 + "docker ps" + " )" * 60))) == "ask"


def test_on_a_system_that_ignores_case_so_does_a_denial() -> None:
    ground = type(GROUND)(folder="/x", ignores_case=True)
    judge = Policy(allow=["Bash"], deny=["Bash(rm:*)"]).on(ground)
    assert told(judge.judge(bash("RM x"))) == "deny"
    assert told(judge.judge(bash("/BIN/Rm x"))) == "deny"


def test_a_pattern_with_many_wildcards_is_matched_in_no_time() -> None:
    pattern = CommandPattern("npm *a*a*a*a*b")
    # Tried one after the other, they would not come to an end.
    assert not pattern.matches(("npm", "a" * 2_000))


#: Each `@` is a command.
COMPOUNDS = (
    "@ && @ || @; @ | @ |& @ & @",
    "( @; @ ); { @; @; }; ! @",
    "if @; then @; @; elif @; then @; elif @; then @; else @; fi; @",
    "while @; do @; @; done; until @; do @; done; @",
    "for x in a b; do @; @; done; for x; do @; done; @",
    "for x do @; done && @",
    "case $x in a) @;; b|cd) @; @;; esac; @",
    "case $x in (a) @;; (b | c) @;; *) @; esac; @",
    "case $x in\n  a)\n    @\n    ;;\n  b) ;;\n  c) @\nesac\n@",
    "[[ -f a && ! -d c ]] && @; @",
    "f() { @; @; }; @",
    "function f { @; }; @",
    'echo $(@; @) `@` "$(@)" <(@) >(@)',
    "@ <<E\n$(@)\nE\n@",
    "@ <<'E'\n$(no command)\nE\n@",
    "if @; then case $x in a) ( @ ) ;; esac; else { @; }; fi | while @; do @; done",
)


@pytest.mark.parametrize("template", COMPOUNDS)
def test_every_command_of_a_compound_is_judged(template: str) -> None:
    judge = Policy("ask", allow=["Bash(ls:*)", "Bash(echo:*)"], deny=["Bash(rm:*)"]).on(GROUND)
    parts = template.split("@")

    def judged(at: int, command: str) -> str:
        words = ["ls"] * (len(parts) - 1)
        words[at] = command
        text = "".join(f"{part}{word}" for part, word in zip(parts, [*words, ""], strict=True))
        return told(judge.judge(bash(text)))

    places = range(len(parts) - 1)
    assert judged(0, "ls") == "allow"
    assert [judged(at, "rm x") for at in places] == ["deny"] * len(places)
    assert [judged(at, "make") for at in places] == ["ask"] * len(places)


@pytest.mark.parametrize(
    "command",
    [
        "case $x in a) ls;& b) ls;; esac",
        "case $x in a) ls;;& b) ls;; esac",
        "case $x in a) ls;;",
        "case $x in a ls;; esac",
        "if ls; then ls",
        "if ls; fi",
        "for x in a; ls; done",
        "( ls",
        "{ ls }",
        "[[ -f a",
        "[[ ]]",
        "echo $(ls",
        "ls \\",
        "x[$(ls)]=a",
        "ls <<E",
    ],
)
def test_what_is_not_understood_is_asked_about(command: str) -> None:
    judge = Policy("ask", allow=["Bash(ls:*)", "Bash(echo:*)"]).on(GROUND)
    assert told(judge.judge(bash(command))) == "ask"
