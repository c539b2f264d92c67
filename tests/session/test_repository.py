"""What git would run because a repository says so is found before git runs it: held to real git."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from bridle.policy import Call, Policy
from bridle.policy.force import InForce
from bridle.policy.git_settings import is_harmless
from bridle.session.ground import ground_of, with_repositories
from bridle.session.repository import _of_settings, _value, git_runs
from tests.levels import tries
from tests.policy.grounds import bash, told

#: What a preset allows of git: it is only to look.
LOOKS = (
    "git status",
    "git diff",
    "git diff HEAD",
    "git log -p -3",
    "git show HEAD",
    "git blame f",
    "git grep x",
    "git ls-files -m",
    "git cat-file -p HEAD:f",
    "git describe --always --dirty",
    "git branch -a",
    "git rev-list --all",
    "git shortlog HEAD",
)


class Repository:
    """A repository with one commit and a change, and a program that tells that it was run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "work"
        self.home = folder / "home"
        self.ran = folder / "ran"
        self.program = folder / "program"
        self.program.write_text(f'#!/bin/sh\necho "$0 $*" >> {self.ran}\n')
        self.program.chmod(0o700)
        self.home.mkdir()
        self.folder.mkdir()
        self.git("init", "-q", "-b", "main")
        (self.folder / "f").write_text("x\n")
        (self.folder / "g").write_text("same\n")
        self.git("add", "f", "g")
        self._touched = 0
        self.git("commit", "-qm", "one")
        (self.folder / "f").write_text("y\n")

    def git(self, *words: str, cwd: Path | None = None) -> str:
        return self.run("git " + " ".join(words), cwd)

    def run(self, command: str, cwd: Path | None = None) -> str:
        env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        who = {f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER")
               for what in ("NAME", "EMAIL")}  # fmt: skip
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=cwd or self.folder,
            env={**env, **who, "HOME": str(self.home)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.stdout

    def config(self, text: str) -> None:
        with (self.folder / ".git/config").open("a") as file:
            file.write(text.replace("PROGRAM", str(self.program)))

    def touch(self) -> None:
        """What git has noted of its files holds no more: it looks again, and of the one that
        has not changed it notes that."""
        self._touched += 1
        for name in ("f", "g"):
            if (file := self.folder / name).exists():
                os.utime(file, (self._touched, self._touched))


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def whats(folder: Path) -> list[str]:
    return [runs.what for runs in git_runs(str(folder))]


def hook(name: str) -> Callable[[Repository], None]:
    def make(repository: Repository) -> None:
        file = repository.folder / ".git/hooks" / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(repository.program.read_bytes())
        file.chmod(0o700)

    return make


def settings(text: str, attributes: str = "") -> Callable[[Repository], None]:
    def make(repository: Repository) -> None:
        repository.config(text)
        (repository.folder / ".gitattributes").write_text(attributes)

    return make


def hooks_elsewhere(repository: Repository) -> None:
    hook("post-index-change")(repository)
    repository.run("mv .git/hooks h")
    repository.config("[core]\nhooksPath = h\n")


def included(repository: Repository) -> None:
    (repository.folder / "more").write_text(f"[core]\nfsmonitor = {repository.program}\n")
    repository.config("[include]\npath = ../more\n")


def of_a_worktree(repository: Repository) -> None:
    repository.config("[extensions]\nworktreeConfig = true\n")
    file = repository.folder / ".git/config.worktree"
    file.write_text(f"[core]\nfsmonitor = {repository.program}\n")


def submodule(repository: Repository) -> None:
    inner = repository.folder / "inner"
    inner.mkdir()
    repository.git("init", "-q", cwd=inner)
    repository.run("touch a && git add a && git commit -qm a", inner)
    repository.git("add", "inner")
    with (inner / ".git/config").open("a") as file:
        file.write(f"[core]\nfsmonitor = {repository.program}\n")


def odd_submodule(repository: Repository) -> None:
    """git looks at a part of its mode alone."""
    submodule(repository)
    patch_index(repository, lambda data: data.replace(b"\0\0\xe0\0", b"\0\0\xe1\xa4", 1))


def patch_index(repository: Repository, change: Callable[[bytes], bytes]) -> None:
    file = repository.folder / ".git/index"
    data = change(file.read_bytes()[:-20])
    file.write_bytes(data + hashlib.sha1(data, usedforsecurity=False).digest())


def below_an_empty_one(repository: Repository) -> None:
    """git takes a folder with nothing in it for no repository, and looks on above."""
    repository.config("[core]\nfsmonitor = PROGRAM\n")
    (repository.folder / "sub/.git").mkdir(parents=True)
    (repository.folder / "sub/f").write_text("x\n")
    repository.folder /= "sub"


def hooks_in_quotes(repository: Repository) -> None:
    hooks_elsewhere(repository)
    file = repository.folder / ".git/config"
    file.write_text(file.read_text().replace("hooksPath = h", 'hooksPath = "h" # ours'))


def bare(repository: Repository) -> None:
    """A repository of files that anybody could write, in a folder that is none."""
    repository.run("mv .git ../away; rm f; mkdir objects/ refs/; mkdir objects/x refs/x")
    (repository.folder / "HEAD").write_text("ref: refs/heads/main\n")
    text = "[core]\nrepositoryformatversion = 0\nbare = false\nworktree = .\nfsmonitor = "
    (repository.folder / "config").write_text(f"{text}{repository.program}\n")


def elsewhere(repository: Repository) -> None:
    repository.config("[core]\nfsmonitor = PROGRAM\n")
    repository.run("mv .git data; echo 'gitdir: data' > .git")


def common(repository: Repository) -> None:
    repository.config("[core]\nfsmonitor = PROGRAM\n")
    repository.run("mkdir own; mv .git data; cp data/HEAD data/index own")
    (repository.folder / "own/commondir").write_text("../data\n")
    (repository.folder / ".git").write_text("gitdir: own\n")


#: Ways to have git run the program where it is only to look.
WAYS: dict[str, Callable[[Repository], None]] = {
    "a monitor": settings("[core]\nfsmonitor = PROGRAM\n"),
    "a monitor, oddly written": settings("[CORE]\n\tFSMonitor=PROGRAM # no comment\n"),
    "a monitor on the line of its section": settings('[core] fsmonitor = "PROGRAM"\n'),
    "a filter": settings('[filter "z"]\nclean = PROGRAM\n', "* filter=z\n"),
    "a filter that stays": settings('[filter "z"]\nprocess = PROGRAM\n', "* filter=z\n"),
    "a filter in the old form of a section": settings(
        "[filter.z]\nclean = PROGRAM\n", "* filter=z\n"
    ),
    "a filter over two lines": settings(
        '[filter "z"]\nclean = PR\\\nOGRAM\n', "* filter=z\n"
    ),
    "a comparer": settings("[diff]\nexternal = PROGRAM\n"),
    "a comparer of some files": settings('[diff "z"]\ncommand = PROGRAM\n', "* diff=z\n"),
    "a reader of some files": settings('[diff "z"]\ntextconv = PROGRAM\n', "* diff=z\n"),
    "a hook": hook("post-index-change"),
    "hooks elsewhere": hooks_elsewhere,
    "hooks elsewhere, in quotes": hooks_in_quotes,
    "an included file": included,
    "settings of a worktree": of_a_worktree,
    "a submodule": submodule,
    "a submodule of an odd mode": odd_submodule,
    "a repository above an empty one": below_an_empty_one,
    "a bare repository": bare,
    "a folder that is a link to a repository": elsewhere,
    "a repository that shares another's settings": common,
}  # fmt: skip
#: git does not run these; it is no loss that they are told.
NEVER_RUN = {"a filter over two lines"}


@pytest.mark.parametrize("way", WAYS)
def test_what_git_runs_when_it_only_looks_is_found_before(way: str, repository: Repository) -> None:
    assert whats(repository.folder) == []
    WAYS[way](repository)
    found = git_runs(str(repository.folder))
    assert any(runs.is_unasked for runs in found)
    ground = with_repositories(ground_of(repository.folder, home=str(repository.home)))
    policies = [Policy("read-only"), Policy("edits", allow=["Bash(git:*)"])]
    for command in LOOKS:
        for policy in policies:
            assert told(policy.on(ground).judge(bash(command))) != "allow"
        repository.touch()
        repository.run(command)
    # Else the test would show nothing.
    assert repository.ran.exists() != (way in NEVER_RUN)


def test_what_is_trusted_is_allowed_and_nothing_else(repository: Repository) -> None:
    hook("pre-commit")(repository)
    ground = with_repositories(ground_of(repository.folder))
    force = InForce(Policy("edits", allow=["Bash(git commit:*)"]), ground)
    commit = bash("git commit -m x")
    assert told(force.judge(commit)) == "guard"
    force.trust(map(str, git_runs(str(repository.folder))))
    assert told(force.judge(commit)) == "allow"
    assert told(force.judge(bash("git status"))) == "allow"
    (repository.folder / ".git/hooks/pre-commit").write_text("#!/bin/sh\nother\n")
    assert told(force.judge(commit)) == "guard"


def test_what_changes_after_it_was_trusted_is_asked_about(repository: Repository) -> None:
    """Included files, programs of the repository's own, submodules, hooks wherever they are."""
    folder = repository.folder
    (folder / "tools").mkdir()
    (folder / "tools/clean.sh").write_text("cat\n")
    (folder / "git.inc").write_text("[alias]\nx = status\n")
    repository.config('[filter "z"]\nclean = sh tools/clean.sh\n[include]\npath = ../git.inc\n')
    submodule(repository)
    hooks_in_quotes(repository)
    ground = with_repositories(ground_of(folder))
    status = bash("git status")

    def trusted() -> InForce:
        force = InForce(Policy("edits"), ground)
        force.trust(map(str, git_runs(str(folder))))
        assert told(force.judge(status)) == "allow"
        return force

    for name, text in (
        ("tools/clean.sh", "evil\n"),
        ("git.inc", "[core]\nfsmonitor = evil\n"),
        ("inner/.git/config", "[core]\nfsmonitor = evil\n"),
        ("h/post-index-change", "#!/bin/sh\nevil\n"),
    ):
        force = trusted()
        file = folder / name
        mode = file.stat().st_mode
        file.write_text(text)
        file.chmod(mode)
        assert told(force.judge(status)) == "guard", name
    force = trusted()
    new = folder / "vendor"
    new.mkdir()
    repository.git("init", "-q", cwd=new)
    repository.run("touch a && git add a && git commit -qm a", new)
    repository.git("add", "vendor")
    assert told(force.judge(status)) == "allow"  # that one has nothing to run
    repository.git("config", "core.fsmonitor", "evil", cwd=new)
    assert told(force.judge(status)) == "guard"


def test_what_git_runs_by_its_words_or_the_history_is_not_taken_for_looking(
    repository: Repository,
) -> None:
    ground = with_repositories(ground_of(repository.folder))
    judge = Policy("edits").on(ground)
    for command in ("git log -p --submodule=diff", "git diff --submodule", "git log --subm=diff"):
        assert told(judge.judge(bash(command))) == "ask"
    repository.config("[diff]\nsubmodule = diff\n[format]\npretty = %G?\n")
    assert whats(repository.folder) == ["diff.submodule", "format.pretty"]


def test_an_index_that_leaves_out_folders_is_asked_about(repository: Repository) -> None:
    run = repository.run
    run("mkdir a b; touch a/x b/y; git add .; git commit -qm two")
    run("git sparse-checkout init --cone --sparse-index; git sparse-checkout set a")
    assert b"sdir" in (repository.folder / ".git/index").read_bytes()
    assert whats(repository.folder) == ["an index that leaves out folders"]


def test_submodules_that_run_nothing_are_no_reason_to_ask(repository: Repository) -> None:
    other = repository.folder.parent / "other"
    repository.run(f"git clone -q . {other}")
    repository.run(f"git -c protocol.file.allow=always submodule add -q {other} sub/mod")
    repository.run("git commit -qm sub; git submodule absorbgitdirs")
    assert (repository.folder / ".git/modules/sub/mod/config").exists()
    for version in ("2", "3", "4"):
        repository.run(f"git update-index --index-version {version}; git add -N .")
        assert whats(repository.folder) == []
        repository.git("config", "core.fsmonitor", "x", cwd=repository.folder / "sub/mod")
        assert whats(repository.folder) == ["core.fsmonitor"]
        repository.git("config", "--unset", "core.fsmonitor", cwd=repository.folder / "sub/mod")


def test_a_folder_with_a_repositorys_files_is_one_and_asked_about(repository: Repository) -> None:
    repository.run("mv .git ../away; rm f; mkdir objects/ refs/")
    (repository.folder / "HEAD").write_text("ref: refs/heads/main\n")
    (repository.folder / "config").write_text("[core]\nbare = true\n")
    assert whats(repository.folder) == ["a bare repository"]


def test_the_first_reason_is_told(repository: Repository) -> None:
    repository.config("[core]\nfsmonitor = ./evil\n")
    ground = with_repositories(ground_of(repository.folder))
    text = Policy("edits").on(ground).explain(bash("git status"))
    assert "git would run core.fsmonitor" in text
    assert "./evil" in text


def ordinary(repository: Repository) -> list[Path]:
    """Repositories as people have them."""
    top = repository.folder.parent
    repository.run(
        "git config user.name a; git config user.email b@c; git config pull.rebase true;"
        "git branch x; git worktree add -q ../tree x; git remote add o https://example.com/x.git;"
        "git remote add p git@example.com:a/b.git; git config branch.main.remote o;"
        "git config branch.main.merge refs/heads/main; git gc -q; git tag v1"
    )
    repository.run(f"git clone -q {repository.folder} clone", top)
    repository.run(f"git clone -q --filter=blob:none --no-local {repository.folder} part", top)
    repository.run("git sparse-checkout set f; git update-index --split-index", top / "part")
    repository.run("mkdir -p a/b; git update-index --index-version 4", top / "clone")
    return [repository.folder, top / "tree", top / "clone", top / "part", top / "clone/a/b", top]


def test_of_an_ordinary_repository_nothing_is_said(repository: Repository) -> None:
    for folder in ordinary(repository):
        assert folder.is_dir()
        assert whats(folder) == []
        ground = with_repositories(ground_of(folder))
        assert told(Policy("read-only").on(ground).judge(bash("git status"))) == "allow"


def test_each_folder_is_looked_at_where_a_script_may_lead(repository: Repository) -> None:
    other = repository.folder / "vendor/lib"
    other.mkdir(parents=True)
    repository.git("init", "-q", cwd=other)
    with (other / ".git/config").open("a") as file:
        file.write("[core]\nfsmonitor = ./evil\n")
    ground = with_repositories(ground_of(repository.folder))
    judge = Policy("edits", allow=["Bash(git -C:*)", "Bash(git --git-dir:*)"]).on(ground)
    assert told(judge.judge(bash("git status"))) == "allow"
    for command in (
        "cd vendor/lib && git status",
        "cd vendor && (cd lib; git log)",
        "git -C vendor/lib status",
        "git -C vendor -C lib status",
        "git --git-dir vendor/lib/.git status",
    ):
        assert told(judge.judge(bash(command))) == "guard", command
    assert told(judge.judge(Call("Bash", {"command": "git status"}, cwd=str(other)))) == "guard"


@pytest.mark.parametrize(
    "url",
    ["ext::sh -c x", "foo://x", "-x", "https://-x", 'ext"::"sh', "fd::3", "a b::c", "ssh://-oX/y"],
)
def test_an_address_that_starts_a_program_is_found(url: str, repository: Repository) -> None:
    repository.config(f'[remote "o"]\nurl = {url}\n')
    assert whats(repository.folder) == ["remote.url"]


@pytest.mark.parametrize("url", ["https://a.b/c", "git@a.b:c/d.git", "../other", "ssh://g@h/x", ""])
def test_other_addresses_are_not(url: str, repository: Repository) -> None:
    repository.config(f'[remote "o"]\nurl = {url}\n')
    assert whats(repository.folder) == []


@pytest.mark.parametrize(
    "made", [os.mkfifo, lambda at: at.mkdir(), lambda at: at.write_bytes(b"\xff")]
)
def test_settings_that_cannot_be_read_are_not_taken_for_none(
    made: Callable[[Path], object], repository: Repository
) -> None:
    file = repository.folder / ".git/config"
    file.unlink()
    made(file)
    assert whats(repository.folder) == ["settings that can't be read"]


def test_values_are_read_as_git_reads_them(tmp_path: Path) -> None:
    file, same = tmp_path / "config", 0
    for seed in range(tries(80, 1_000)):
        chosen = random.Random(seed)
        text = "".join(chosen.choice('ab "#;\\\\nt\t') for _ in range(chosen.randrange(1, 9)))
        file.write_text(f"[user]\nname = {text}\nemail = z\n")
        words = ["git", "config", "--file", str(file), "-z", "user.name"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode == 0 and not text.endswith("\\"):
            found = _value(text.strip(" \t"))
            assert found in (done.stdout.rstrip("\0"), None), (text, done.stdout)
            same += found is not None
    assert same > 10


LINES = (
    *("[core]", "[Core] ", '[remote "o"]', '[branch "a]b"]', "[user]", '[diff "x"]', "[core", "]"),
    *("filemode = true", "\tbare", "name = me # x", "url = https://x", "remote = ."),
    *("url = ext::x", "name = a \\", 'name = "a', 'name = "a\\"', "name = a\\\\"),
    *("; x \\", "# x", ""),
    *("\ufeff[core]", "fsmonitor = x", "\rfsmonitor = x", "name = \x0bx", "\x0cfsmonitor=x"),
    *("[core]fsmonitor = x",),
)  # fmt: skip
ENDS = ("\n", "\n", "\n", "\r\n", "\r", "")


def test_of_random_settings_git_reads_no_key_that_was_not_judged(tmp_path: Path) -> None:
    file, read, passed = tmp_path / "config", 0, 0
    for seed in range(tries(150, 4_000, 40_000)):
        chosen = random.Random(seed)
        lines = (chosen.choice(LINES) + chosen.choice(ENDS) for _ in range(chosen.randrange(1, 6)))
        text = "[core]\nbare = false\n" + "".join(lines)
        file.write_text(text, newline="")
        if list(_of_settings(str(file))):
            continue
        passed += 1
        done = subprocess.run(
            ["git", "config", "--file", str(file), "--list", "-z"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        for entry in filter(None, done.stdout.split("\0")):
            name, _, value = entry.partition("\n")
            section, key = name.partition(".")[0], name.rpartition(".")[2]
            assert is_harmless(section, key, value), (seed, text, entry)
            read += 1
    assert passed > 5
    assert read > 5
