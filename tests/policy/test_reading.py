"""Commands that only read: one that is taken for such and is not would pass unseen."""

from __future__ import annotations

import pytest

from bridle.policy.reading import is_reading
from bridle.policy.shell.programs import read_commands


def reads(command: str) -> bool:
    commands = read_commands(command)
    return not commands.unclear and all(map(is_reading, commands.programs))


@pytest.mark.parametrize(
    "command",
    [
        *("ls", "ls -la --color", "cat a b", "head -n 5 x", "tail -20 x", "wc -l x", "stat x"),
        *(
            "sort x",
            "sort -u -k2,2 x",
            "sort -n -r x",
            "grep -rn 'a' .",
            "rg -n a",
            "rg -i --hidden a",
        ),
        *("find . -name x -type f", "find . -newer x -print0", "jq .a x", "jq -r '.a[]' x"),
        *("git status --short", "git diff --stat", "git log -5 --oneline --graph", "git show HEAD"),
        *("git branch", "git branch -a -v", "git remote", "git remote -v", "git stash list"),
        *("git tag -l", "git worktree list", "git rev-parse HEAD", "git ls-files src"),
        *("git blame -L 1,5 x", "git grep -n x", "git --no-pager log", "git cat-file -p HEAD"),
        *("timeout 5 ls", "sh -c 'ls | head'", "ls | xargs cat", "nice ls", "command -v x"),
        *("find . -name x -exec cat {} +", "find . -exec grep -l x {} \\;", "true", "[ -f x ]"),
        *("cat $x", "ls *.py", "echo $x", "file x", "diff -u a b", "cut -d: -f1 x", "tr a b"),
    ],
)
def test_it_only_reads(command: str) -> None:
    assert reads(command)


@pytest.mark.parametrize(
    "command",
    [
        *("sort -o x y", "sort -ox y", "sort -no x y", "sort --output x y", "sort --o=x y"),
        *("sort --compress-program=x y", "sort --comp=x y", "sort -T /x y", "sort $x"),
        *("rg --pre x y", "rg --pre=x y", "rg -z x", "rg -nz x", "rg --hostname-bin x", "rg $x"),
        *(
            "find . -exec rm {} +",
            "find . -delete",
            "find . -exec sh -c 'rm x' \\;",
            "find . -ok rm {} \\;",
        ),
        *("jq -f x", "jq --from-file x y", "jq -L x y", "file -C", "file -m x y", "diff $x y"),
        *("git stash", "git stash push", "git stash pop", "git stash drop", "git stash list pop"),
        *("git branch x", "git branch -d x", "git branch -m a b", "git branch -f x", "git tag x"),
        *("git tag -d x", "git remote add a b", "git remote remove a", "git remote update"),
        *("git worktree add x", "git worktree remove x", "git commit", "git add x", "git gc"),
        *(
            "git fetch",
            "git pull",
            "git clean -fd",
            "git reset --hard",
            "git checkout x",
            "git notes",
        ),
        *("git diff --output=x", "git diff --output x", "git log --out=x", "git diff --ext-diff"),
        *("git show --textconv", "git grep -O x", "git grep -Ovi x", "git grep --open-files x"),
        *("git diff $x", "git log $x", "git log `x`", "git", "git config x"),
        *(
            "git -c core.pager=x log",
            "git -C /x log",
            "git --exec-path=x log",
            "git --git-dir=x log",
        ),
        *(
            "git rev-parse --sq-quote $x",
            "git ls-files $x",
            "git reflog expire",
            "git bisect run x",
        ),
        *(
            "rm x",
            "touch x",
            "tee x",
            "cp a b",
            "mv a b",
            "ln a b",
            "sed -i s/a/b/ x",
            "sed -n 1w\\ x y",
        ),
        *("awk 1 x", "python x", "xargs rm", "ls | xargs sort", "sudo ls", "./ls", "/tmp/ls", "LS"),
        *("uniq a b", "split x", "dd of=x", "truncate x", "install a b", "env", "tar x", "less x"),
        *("timeout 5 rm x", "sh -c 'rm x'", "nice touch x", "date -s x", "hostname x", "tree -o x"),
    ],
)
def test_it_may_do_more_than_read(command: str) -> None:
    assert not reads(command)
