"""Paths: gitignore's forms, links, and where an agent's folders end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridle.errors import InvalidRule
from bridle.policy import Call, Ground, Policy
from bridle.policy.paths import PathPattern, clean, place

from .grounds import FOLDER, GROUND, HOME, bash, real_ground, told


def read(path: object, tool: str = "Read") -> Call:
    return Call(tool, {"notebook_path" if "Notebook" in tool else "file_path": path})


def edit(path: object) -> Call:
    return Call("Edit", {"file_path": path, "old_string": "a", "new_string": "b"})


def matches(
    pattern: str, path: str, *, covers_below: bool = False, ground: Ground = GROUND
) -> bool:
    bound = PathPattern(pattern).bind(ground, covers_below=covers_below)
    return bound.matches_either(place(path, ground.folder, ground))


@pytest.mark.parametrize(
    ("pattern", "path", "is_match"),
    [
        # From the root, from home, from the folder
        ("//etc/passwd", "/etc/passwd", True),
        ("//etc/**", "/etc/ssl/x", True),
        ("//etc/**", "/etcetera", False),
        ("/etc/passwd", "/etc/passwd", False),
        ("/etc/passwd", f"{FOLDER}/etc/passwd", True),
        ("~/.ssh/**", f"{HOME}/.ssh/id", True),
        ("~/.ssh/**", f"{FOLDER}/~/.ssh/id", False),
        ("~/x", "~/x", True),
        ("~x", f"{FOLDER}/a/~x", True),
        ("/src/**", "src/a/b.py", True),
        ("./src/**", "src/a/b.py", True),
        ("src/**", "src/a/b.py", True),
        ("src/**", "a/src/b.py", False),
        ("/src/**", "src2/a", False),
        ("/src/**", "/src/a", False),
        # A name alone is at any depth
        (".env", ".env", True),
        (".env", "a/b/.env", True),
        (".env", ".env2", False),
        (".env", "/other/.env", False),
        ("*.py", "a/b/c.py", True),
        ("*.py", "c.pyc", False),
        ("secrets/", "a/secrets/b/c", True),
        ("secrets/", "secretsx/b", False),
        ("**/.env", "a/b/.env", True),
        ("**/.env", ".env", True),
        # Wildcards do not cross a slash, two stars do
        ("/src/*", "src/a", True),
        ("/src/*", "src/a/b", False),
        ("/src/*.py", "src/a.py", True),
        ("/s?c/a", "src/a", True),
        ("/s?c/a", "s/c/a", False),
        ("/a/**/b", "a/b", True),
        ("/a/**/b", "a/x/y/b", True),
        ("/a/**/b", "a/xb", False),
        ("/[ab].py", "a.py", True),
        ("/[ab].py", "c.py", False),
        ("/[!ab].py", "c.py", True),
        ("/[!ab].py", "a.py", False),
        ("/[^ab].py", "c.py", True),
        ("/[^ab].py", "a.py", False),
        ("/[a-c]x", "bx", True),
        ("/a.b", "axb", False),
        ("/a+b(c)", "a+b(c)", True),
        ("/[", "[", True),
        ("/**", "a/b/c", True),
        ("**", "a/b/c", True),
        # `..`, `.`, doubled slashes
        ("/src/**", "src/../other", False),
        ("/src/**", "./src/./a//b", True),
        ("/src/**", f"{FOLDER}/x/../src/a", True),
        ("/src/**", "src/../../app/src/a", True),
        ("/src/**", "SRC/a", False),
        ("/a\nb", "a\nb", True),
    ],
)
def test_a_path_is_matched_as_in_gitignore(pattern: str, path: str, is_match: bool) -> None:
    assert matches(pattern, path) is is_match


@pytest.mark.parametrize(
    "pattern", ["/secrets", "secrets", "./secrets/", "/secrets/**", "secrets/**"]
)
def test_what_denies_a_folder_denies_all_in_it(pattern: str) -> None:
    judge = Policy("autonomous", deny=[f"Read({pattern})"]).on(GROUND)
    assert told(judge.judge(read("secrets/a/b"))) == "deny"


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("//", "/etc/passwd"),
        ("/", f"{FOLDER}/a"),
        ("~/", f"{HOME}/a"),
        ("~", f"{HOME}/a"),
        ("./", "a"),
    ],
)
def test_a_folder_alone_is_denied_with_all_in_it(pattern: str, path: str) -> None:
    judge = Policy("autonomous", deny=[f"Read({pattern})"]).on(GROUND)
    assert told(judge.judge(read(path))) == "deny"


def test_what_allows_a_folder_allows_only_what_it_says() -> None:
    judge = Policy(allow=["Edit(/src)"]).on(GROUND)
    assert told(judge.judge(edit("src/a"))) == "ask"


@pytest.mark.parametrize("pattern", ["", " ", "!x", "..", "../x", "/a/../b", "~/../x", "//../x"])
def test_a_wrong_path_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidRule):
        PathPattern(pattern)


@pytest.mark.parametrize(
    "pattern", ["/[z-a]", "/[!]", "/[]", "/[^]", "/[]]", "/[\\d]", "/[a--b]", "/[[:x:]]"]
)
def test_a_set_of_characters_is_read_or_refused_when_the_rule_is(pattern: str) -> None:
    try:
        policy = Policy(deny=[f"Read({pattern})"])
    except InvalidRule:
        return
    policy.on(GROUND).judge(read("x"))


@given(st.text(alphabet="ab*?[]!^-/.~\\{}", min_size=1, max_size=12), st.text(max_size=8))
def test_any_pattern_that_is_taken_can_be_put_to_work(pattern: str, path: str) -> None:
    try:
        policy = Policy("autonomous", deny=[f"Read({pattern})"])
    except InvalidRule:
        return
    judge = policy.on(GROUND)
    judge.judge(read(path))
    judge.judge(bash(f"cat '{pattern}'* x/{path}"))


def test_where_case_is_ignored_a_denial_holds_for_every_spelling() -> None:
    ground = Ground(folder=FOLDER, home=HOME, ignores_case=True)
    judge = Policy("autonomous", deny=["Read(/secrets/**)"]).on(ground)
    assert told(judge.judge(read("SECRETS/Key"))) == "deny"
    assert told(judge.judge(bash("cat SeCrets/key"))) == "deny"
    assert told(judge.judge(bash("cat S*/key"))) == "ask"
    assert (
        told(Policy("autonomous", deny=["Read(/secrets/**)"]).on(GROUND).judge(read("SECRETS/x")))
        == "allow"
    )


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a//b", "a/b"),
        ("/a/../b", "/b"),
        ("//a", "/a"),
        ("/", "/"),
        ("/a/", "/a"),
        ("/../a", "/a"),
        ("///a/./b/..", "/a"),
    ],
)
def test_a_clean_path_has_no_detours(path: str, expected: str) -> None:
    assert clean(path) == expected


# --- links, for real


def test_a_link_to_a_hidden_file_is_denied_too(tmp_path: Path) -> None:
    folder = tmp_path / "app"
    (folder / "secrets").mkdir(parents=True)
    (folder / "secrets/key").write_text("x")
    (folder / "innocent").symlink_to("secrets/key")
    (folder / "way").symlink_to("secrets")
    (folder / "way2").symlink_to("way")
    judge = Policy(allow=["Bash(cat:*)"], deny=["Read(./secrets/**)"]).on(real_ground(folder))
    for path in ("innocent", "way/key", "way2/key", str(folder / "way/key"), "./way/../innocent"):
        assert told(judge.judge(read(path))) == "deny", path
        assert told(judge.judge(bash(f"cat {path}"))) == "deny", path
        assert told(judge.judge(bash(f"cat < {path}"))) == "deny", path
    assert told(judge.judge(bash("cd way && cat key"))) == "deny"
    assert told(judge.judge(read("other"))) == "allow"


def test_what_is_asked_about_is_asked_about_by_whichever_name(tmp_path: Path) -> None:
    folder = tmp_path / "app"
    (folder / "plans").mkdir(parents=True)
    (folder / "innocent").symlink_to("plans/next")
    judge = Policy(allow=["Read"], ask=["Read(./plans/**)"]).on(real_ground(folder))
    assert told(judge.judge(read("plans/next"))) == "ask"
    assert told(judge.judge(read("innocent"))) == "ask"
    assert told(judge.judge(read("other"))) == "allow"


def test_a_link_from_outside_into_the_folder_is_outside(tmp_path: Path) -> None:
    folder = tmp_path / "app"
    folder.mkdir()
    (tmp_path / "link").symlink_to(folder)
    judge = Policy("edits").on(real_ground(folder))
    assert told(judge.judge(edit("a"))) == "allow"
    assert told(judge.judge(edit(str(tmp_path / "link/a")))) == "ask"


def test_an_allowed_folder_with_a_link_out_of_it_lets_nothing_out(tmp_path: Path) -> None:
    folder = tmp_path / "app"
    (folder / "src").mkdir(parents=True)
    outside = tmp_path / "outside"
    outside.mkdir()
    (folder / "src/out").symlink_to(outside)
    (folder / "src/file").symlink_to(outside / "file")
    ground = real_ground(folder)
    for policy in (Policy(allow=["Edit(/src/**)", "Bash(echo:*)"]), Policy("edits")):
        judge = policy.on(ground)
        assert told(judge.judge(edit("src/a"))) == "allow"
        assert told(judge.judge(bash("echo x > src/a"))) == "allow"
        for path in ("src/out/a", "src/file", "src/out/../a"):
            assert told(judge.judge(edit(path))) == "ask", path
            assert told(judge.judge(bash(f"echo x > {path}"))) == "ask", path


def test_a_link_to_the_settings_is_guarded(tmp_path: Path) -> None:
    folder = tmp_path / "app"
    (folder / ".claude").mkdir(parents=True)
    (folder / "cfg").symlink_to(".claude")
    (folder / "notes.json").symlink_to(".claude/settings.json")
    judge = Policy("autonomous").on(real_ground(folder))
    for path in ("cfg/settings.json", "notes.json"):
        assert told(judge.judge(edit(path))) == "guard"
        assert told(judge.judge(bash(f"echo x > {path}"))) == "guard"
        assert told(judge.judge(bash(f"cp x {path}"))) == "guard"
    assert told(judge.judge(bash("cd cfg && cp x settings.json"))) == "guard"


def test_a_link_to_bridles_home_is_guarded(tmp_path: Path) -> None:
    folder = tmp_path / "app"
    folder.mkdir()
    home = tmp_path / "state"
    home.mkdir()
    (folder / "s").symlink_to(home)
    judge = Policy("autonomous").on(real_ground(folder, bridle_home=str(home)))
    assert told(judge.judge(read("s/token"))) == "guard"
    assert told(judge.judge(bash("cat s/token"))) == "guard"


def test_bridles_home_that_is_a_link_is_guarded_under_both_names(tmp_path: Path) -> None:
    folder, real = tmp_path / "app", tmp_path / "real"
    folder.mkdir()
    real.mkdir()
    (tmp_path / "alias").symlink_to(real)
    judge = Policy("autonomous").on(real_ground(folder, bridle_home=str(tmp_path / "alias")))
    assert told(judge.judge(read(str(real / "token")))) == "guard"
    assert told(judge.judge(read(str(tmp_path / "alias/token")))) == "guard"


def test_a_folder_that_is_reached_by_a_link_is_known_under_both_names(tmp_path: Path) -> None:
    """On macOS /tmp is /private/tmp, and the CLI tells the real one."""
    real = tmp_path / "real"
    (real / "src").mkdir(parents=True)
    (tmp_path / "link").symlink_to(real)
    for policy in (Policy(allow=["Edit(/src/**)"]), Policy("edits")):
        judge = policy.on(real_ground(tmp_path / "link"))
        assert told(judge.judge(edit(str(tmp_path / "link/src/a")))) == "allow"
        assert told(judge.judge(edit(str(real / "src/a")))) == "allow"


def test_a_rule_for_a_folder_that_is_a_link_holds_for_what_it_leads_to(tmp_path: Path) -> None:
    folder = tmp_path / "app"
    (folder / "vault").mkdir(parents=True)
    (folder / "secrets").symlink_to("vault")
    judge = Policy("autonomous", deny=["Read(/secrets/**)"]).on(real_ground(folder))
    assert told(judge.judge(read("secrets/key"))) == "deny"


def test_edits_beside_the_folder_need_leave(tmp_path: Path) -> None:
    ground = Ground(folder="/a/app", also=("/a/lib",), resolve=os.path.normpath)
    judge = Policy("edits").on(ground)
    assert told(judge.judge(edit("/a/lib/x"))) == "allow"
    assert told(judge.judge(edit("/a/library/x"))) == "ask"
    assert told(judge.judge(edit("/a/app/../lib/x"))) == "allow"
    assert told(judge.judge(edit("/a/app/../x"))) == "ask"
    assert told(judge.judge(edit("~/x"))) == "ask"


def test_a_path_is_taken_from_where_the_shell_is() -> None:
    judge = Policy(allow=["Edit(/src/**)"], deny=["Read(/secrets/**)"]).on(GROUND)
    inside = Call("Edit", {"file_path": "a"}, cwd=f"{FOLDER}/src")
    assert told(judge.judge(inside)) == "allow"
    assert told(judge.judge(Call("Read", {"file_path": "key"}, cwd=f"{FOLDER}/secrets"))) == "deny"
    call = Call("Bash", {"command": "cat key"}, cwd=f"{FOLDER}/secrets")
    assert told(Policy(allow=["Bash"], deny=["Read(/secrets/**)"]).on(GROUND).judge(call)) == "deny"


def test_a_pattern_with_many_double_stars_is_matched_in_no_time() -> None:
    bound = PathPattern("**/a/**/a/**/a/**/b").bind(GROUND, covers_below=True)
    # Tried one after the other, they would not come to an end.
    assert not bound.matches(f"{FOLDER}/{'a/' * 2_000}c")


def test_a_glob_of_many_stars_is_matched_at_once() -> None:
    """With each star tried at each place it would take for ever."""
    bound = PathPattern("/" + "a" * 200).bind(Ground(folder="/w"), covers_below=True)
    for glob in ("a*" * 60 + "x", "*" * 80 + "x", "*a?" * 40 + "x"):
        assert not bound.may_match(f"/w/{glob}")
    for glob in ("a*" * 60, "*" * 80, "a*a?a*"):
        assert bound.may_match(f"/w/{glob}")
