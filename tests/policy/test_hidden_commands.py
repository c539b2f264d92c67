"""Commands that stand in the words of others are judged too, for rules that the table has not."""

from __future__ import annotations

import random
import string
from typing import Any

import pytest
from typer.main import get_command

from bridle.cli.main import app
from bridle.policy import Asked, Policy
from bridle.policy.nested import COMMANDS
from bridle.policy.shell.programs import read_commands

from .grounds import GROUND, bash, told

DENIED = (
    *("make deploy:*", "kubectl delete:*", "gh pr merge:*", "aws s3 rm:*", "cargo publish:*"),
    *("git push:*", "gradle publish", "tox -e deploy:*", "nox -s deploy:*", "npm run deploy:*"),
    *("ninja install", "mvn deploy:*", "pip install:*"),
)
JUDGE = Policy(allow=["Bash"], deny=[f"Bash({rule})" for rule in DENIED]).on(GROUND)
FREE = Policy(allow=["Bash"]).on(GROUND)


@pytest.mark.parametrize(
    "command",
    [
        'make -C "$d" deploy',
        "make V=1 deploy",
        "make all deploy",
        "make deploy all",
        "make -j 4 clean all deploy V=1",
        'make -j"$(nproc)" deploy',
        "gmake() { make all deploy; }; gmake",
        "ninja all install",
        "mvn clean deploy",
        "gradle clean publish",
        "nox -s lint deploy",
        "tox -e lint,deploy",
        'kubectl -n "$ns" delete pod x',
        'kubectl --context "$c" -n "$ns" delete pod x',
        'gh -R "$repo" pr merge 3',
        'gh pr -R "$repo" merge 3',
        'aws --profile "$p" s3 rm s3://x',
        'cargo --config "$x" publish',
        "cargo-publish",
        "make -f -C deploy",
        "make -- -C deploy",
        "uv run bash -lc 'make all deploy'",
        "ssh h sh -c \"'git push'\"",
    ],
)
def test_an_option_or_another_target_does_not_hide_a_denied_command(command: str) -> None:
    assert told(JUDGE.judge(bash(command))) == "deny"


@pytest.mark.parametrize(
    "command",
    [
        'make "$t"',
        'make all "$t"',
        'make --silent "$t"',
        'kubectl "$x" pod y',
        'npm run "$s"',
        "uv run make $t",
        "cd x; taskset 1 kubectl -n y $x",
        'd="x deploy"; make -C $d',
        "IFS=,; d=x,deploy; make -C $d",
        "for d in a $(ls); do make -C $d; done",
    ],
)
def test_an_unknown_word_that_may_be_the_denied_command_is_asked_about(command: str) -> None:
    assert told(JUDGE.judge(bash(command))) == "ask"


@pytest.mark.parametrize(
    "command",
    [
        'make -C "$d" test',
        'make -j"$(nproc)" test',
        "make V=1 all test",
        'kubectl -n "$ns" get pods',
        'kubectl get pods -n "$ns" -o wide',
        'gh -R "$repo" pr list',
        'gh pr create --title "$t" --body "$b"',
        'aws --profile "$p" s3 ls',
        'cargo --config "$x" build',
        'cargo --config "$x" run -- publish',
        "npm --prefix deploy test",
        "for d in a b; do git -C $d status; done",
        "for d in a b; do make -C $d test; done",
        "d=src; npm --prefix packages/$d run test",
        "mise run $t",
        "make -C deploy test",
        "python -c 'import os; os.getcwd()'",
        "awk '{print $1}' x",
        "psql -c 'select * from x; select 1'",
    ],
)
def test_what_only_has_unknown_values_is_not_asked_about(command: str) -> None:
    assert told(JUDGE.judge(bash(command))) == "allow"


@pytest.mark.parametrize(
    "command",
    [
        f"docker run {'-e A=1 ' * 300}img git push",
        f"xvfb-run {'x ' * 300}git push",
        f"uv run {'--with x ' * 300}git push",
        f"ssh h '{'a' * 4_000}; git push'",
        f"xvfb-run sh -c '{'a; ' * 4_000}git push'",
        "ssh h " * 60 + "git push",
        f"hyperfine '{'a ' * 4_000}; git push'",
    ],
)
def test_beyond_every_limit_a_command_is_asked_about_where_there_are_rules(command: str) -> None:
    assert told(JUDGE.judge(bash(command))) in ("ask", "deny")
    assert told(FREE.judge(bash(command))) == "allow"


def test_beyond_the_limit_bridle_and_agents_are_still_found() -> None:
    for end in ("bridle approve 1", "claude --settings x", "claude --dangerously-skip-permissions"):
        assert told(FREE.judge(bash(f"docker run {'-e A=1 ' * 300}img {end}"))) == "guard", end


def test_of_a_runner_that_runs_an_unknown_program_this_is_told() -> None:
    verdict = FREE.judge(bash('uv run "$x"'))
    assert isinstance(verdict, Asked)
    assert "not known" in verdict.because


def test_the_commands_of_bridle_are_known_to_the_guard() -> None:
    command: Any = get_command(app)
    assert set(command.list_commands(None)) == COMMANDS


def test_no_words_of_a_search_make_the_reader_raise() -> None:
    for words in ("''", "'' -name x", ". -exec '' \\;", ". -name ''", "-exec", ". -exec ls '' +"):
        read_commands(f"find {words}")


WORDS = (
    *("git", "push", "npm", "make", "ssh", "uv", "run", "find", "bash", "-c", "--", "-x", "''"),
    *("'git push'", '"$x"', "$x", "-C", "--prefix=", "h", "'a; b'", "*.py", "x=y", "--exec='a b'"),
    *("bridle", "claude", "config", "-f", "core.pager", ";", "|", "docker", "exec", "--call='x'"),
    *("\"git $x\"", "'ssh h \"a b\"'", "-", "codex", "-a", "python", "-m"),
)  # fmt: skip


def test_no_words_whatever_make_the_judge_raise() -> None:
    chosen = random.Random(7)
    for _ in range(3_000):
        words = chosen.choices(WORDS, k=chosen.randrange(1, 9))
        words += [chosen.choice(string.printable[:95])] if chosen.random() < 0.2 else []
        JUDGE.judge(bash(" ".join(words)))
        FREE.judge(bash(" ".join(words)))
