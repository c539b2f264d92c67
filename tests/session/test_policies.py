"""What a user may give as a policy, and the ground that it is put on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import bridle
from bridle.errors import InvalidLaunch, InvalidPolicy
from bridle.home.address import Address, write_address
from bridle.policy import Allowed, Asked, Call, Denied
from bridle.process.arguments import can_bypass, with_hooks_on
from bridle.session.folder import MAX_SETTINGS
from bridle.session.ground import ground_of
from bridle.session.policies import in_force
from tests.policy.grounds import bash, told


def spec(folder: Path) -> bridle.LaunchSpec:
    return bridle.LaunchSpec(cwd=folder)


def test_a_preset_is_named(tmp_path: Path) -> None:
    assert bridle.in_force("edits", spec(tmp_path)).policy.preset == "edits"


def test_a_file_is_read_with_what_it_includes(tmp_path: Path) -> None:
    (tmp_path / "team").mkdir()
    (tmp_path / "team/base.toml").write_text('deny = ["Bash(rm:*)"]\npreset = "autonomous"')
    file = tmp_path / "policy.toml"
    file.write_text('preset = "edits"\ninclude = ["team/base.toml"]\nallow = ["Bash(ls:*)"]')
    policy = bridle.load_policy(file)
    assert policy.preset == "edits"
    sources = {rule.text: rule.source for rule in policy.rules}
    assert sources == {
        "Bash(ls:*)": f"{file}:3",
        "Bash(rm:*)": f"{tmp_path / 'team/base.toml'}:1",
    }


def test_the_rules_of_claudes_settings_can_be_used_and_included(tmp_path: Path) -> None:
    settings = tmp_path / "settings.json"
    settings.write_text('{"permissions": {\n "allow": ["Bash(ls:*)"], "deny": ["WebFetch"]}}')
    file = tmp_path / "policy.toml"
    file.write_text('preset = "edits"\ninclude = ["settings.json"]')
    for policy in (bridle.load_policy(settings), bridle.load_policy(file)):
        texts = {(rule.behavior, rule.text, rule.source) for rule in policy.rules}
        source = f"{settings}:2"
        assert texts == {("allow", "Bash(ls:*)", source), ("deny", "WebFetch", source)}
        assert str(settings) in policy.files
    assert bridle.in_force(str(settings), spec(tmp_path)).policy.preset == "ask"


@pytest.mark.parametrize(
    ("given", "reason"),
    [("lax", "no such preset"), ("nowhere.toml", "can't be read")],
)
def test_what_is_no_policy_is_refused_before_anything_starts(
    tmp_path: Path, given: str, reason: str
) -> None:
    with pytest.raises(InvalidPolicy, match=reason):
        bridle.connect(cwd=tmp_path, policy=given)


def test_a_file_with_a_mistake_is_refused_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text('# mine\nallow = [\n  "bash(ls)",\n]')
    with pytest.raises(InvalidPolicy, match=r"policy\.toml:3: .*the tool is called Bash"):
        bridle.connect(cwd=tmp_path, policy=file)


def test_the_policys_own_file_is_guarded(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text('allow = ["Edit(/**)"]')
    force = bridle.in_force(file, spec(tmp_path))
    verdict = force.judge(Call("Write", {"file_path": str(file), "content": ""}))
    assert isinstance(verdict, Asked)
    assert verdict.guard
    other = force.judge(Call("Write", {"file_path": str(tmp_path / "other"), "content": ""}))
    assert isinstance(other, Allowed)


def test_a_file_that_changes_later_is_not_read_again(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text('deny = ["Bash"]')
    force = bridle.in_force(file, spec(tmp_path))
    file.write_text('allow = ["Bash"]')
    assert isinstance(force.judge(Call("Bash", {"command": "ls"})), Denied)


def test_a_policy_in_force_is_held_to_the_options_of_the_launch(tmp_path: Path) -> None:
    force = bridle.in_force("autonomous", spec(tmp_path))
    bridle.connect(cwd=tmp_path, policy=force, disallowed_tools=["Bash(rm:*)"])
    assert isinstance(force.judge(Call("Bash", {"command": "rm x"})), Denied)
    with pytest.raises(TypeError, match="the policy is for"):
        bridle.connect(cwd=tmp_path.parent, policy=force)


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text('preset = "edits"', "utf-8-sig")
    assert bridle.load_policy(file).preset == "edits"


# --- the ground


def test_links_are_followed_wherever_they_are(tmp_path: Path) -> None:
    (tmp_path / "app/src").mkdir(parents=True)
    (tmp_path / "out").mkdir()
    (tmp_path / "app/src/link").symlink_to(tmp_path / "out")
    (tmp_path / "app/file").symlink_to(tmp_path / "out/f")
    resolve = ground_of(tmp_path / "app").resolve
    for path in (
        "src/link/x/y",
        "file",
        "src/../src/link",
        "src/./link/x",
        "src//link",
        "nowhere/x",
    ):
        whole = str(tmp_path / "app") + "/" + path
        assert resolve(whole) == os.path.realpath(whole), path
    assert resolve("/tmp/../etc") == os.path.realpath("/etc")


def test_a_folder_that_is_itself_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert ground_of(tmp_path / "link").resolve(f"{tmp_path}/link/x") == f"{tmp_path}/real/x"


def test_an_edit_through_a_link_that_leads_outside_is_outside(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app/link").symlink_to("/etc")
    force = bridle.in_force("edits", spec(tmp_path / "app"))
    inside = force.judge(Call("Write", {"file_path": str(tmp_path / "app/x"), "content": ""}))
    outside = force.judge(Call("Write", {"file_path": str(tmp_path / "app/link/x"), "content": ""}))
    assert isinstance(inside, Allowed)
    assert isinstance(outside, Asked)


# --- the launch


def test_hooks_stay_on_whatever_the_settings_are(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text('{"model": "m"}')
    for given in (None, {}, "{}", {"model": "m"}, str(file)):
        assert with_hooks_on(given)["disableAllHooks"] is False
    assert with_hooks_on(str(file))["model"] == "m"


@pytest.mark.parametrize("given", [{"disableAllHooks": True}, '{"disableAllHooks": true}'])
def test_settings_that_would_switch_the_gate_off_are_refused(given: object) -> None:
    with pytest.raises(InvalidLaunch, match="switch off Bridle's own hook"):
        with_hooks_on(given)  # type: ignore[arg-type]


@pytest.mark.parametrize("given", ["/nowhere/settings.json", "{ no json", "[1]"])
def test_settings_that_can_not_be_read_are_refused(given: str) -> None:
    with pytest.raises(InvalidLaunch, match="can't be read"):
        with_hooks_on(given)


def test_root_may_bypass_only_in_a_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.delenv("IS_SANDBOX", raising=False)
    assert not can_bypass(bridle.LaunchSpec())
    assert can_bypass(bridle.LaunchSpec(env={"IS_SANDBOX": "1"}))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert can_bypass(bridle.LaunchSpec())


def test_what_is_no_path_is_resolved_to_itself(tmp_path: Path) -> None:
    resolve = ground_of(tmp_path).resolve
    for path in (f"{tmp_path}/a\0b", "/elsewhere/a\0b", f"{tmp_path}/./\0"):
        assert resolve(path) == path


def test_what_is_no_file_of_a_bounded_size_is_no_policy_and_keeps_nobody_waiting(
    tmp_path: Path,
) -> None:
    pipe, large = tmp_path / "pipe.toml", tmp_path / "large.toml"
    os.mkfifo(pipe)
    large.write_text("#" * (MAX_SETTINGS + 1))
    (tmp_path / "folder.json").mkdir()
    outer = tmp_path / "outer.toml"
    for name in ("pipe.toml", "large.toml", "folder.json"):
        with pytest.raises(InvalidPolicy, match="it can't be read"):
            bridle.load_policy(tmp_path / name)
        outer.write_text(f'include = ["{name}"]')
        with pytest.raises(InvalidPolicy, match=f"can't read .*{name}"):
            bridle.load_policy(outer)


@pytest.mark.parametrize("is_linked", [False, True])
def test_the_program_of_the_cli_is_guarded(tmp_path: Path, is_linked: bool) -> None:
    program = tmp_path / "work/bin/my-claude"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh")
    program.chmod(0o700)
    named = program
    if is_linked:
        named = tmp_path / "link"
        named.symlink_to(program)
    for launch in (
        bridle.LaunchSpec(cwd=tmp_path / "work", command=[str(named), "--x"]),
        bridle.LaunchSpec(cwd=tmp_path / "work", env={"BRIDLE_CLAUDE": str(named)}),
    ):
        force = bridle.in_force("edits", launch)
        force.apply(bridle.Policy("edits"))
        for call in (
            Call("Write", {"file_path": str(program), "content": "x"}),
            bash(f"echo x > {program}"),
        ):
            assert told(force.judge(call)) == "guard"
        other = Call("Write", {"file_path": str(tmp_path / "work/a")})
        assert told(force.judge(other)) == "allow"


def test_links_that_a_glob_names_are_followed(tmp_path: Path) -> None:
    work, home = tmp_path / "work", tmp_path / ".bridle"
    work.mkdir()
    home.mkdir()
    (home / "token").write_text("x")
    (work / "link").symlink_to(home)
    (work / "one").symlink_to(home / "token")
    ground = ground_of(work, home=str(tmp_path), bridle_home=str(home))
    judge = bridle.Policy("edits").on(ground)
    for command in (
        "cat l*/token",
        "cat on[e]",
        "cat */token",
        "for d in */; do cat $d/token; done",
    ):
        assert told(judge.judge(bash(command))) == "guard", command
    assert told(judge.judge(bash("cat *.md"))) == "allow"
    assert told(judge.judge(bash("cat " + "[[:" * 4_000))) in ("allow", "ask")


def test_the_server_of_its_home_is_guarded(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    its = bridle.LaunchSpec(cwd=tmp_path, env={"BRIDLE_HOME": str(home)})
    elsewhere = bridle.LaunchSpec(cwd=tmp_path, env={"BRIDLE_HOME": str(tmp_path / "other")})
    call = Call("Bash", {"command": "curl http://127.0.0.1:45678/api/v1/me"})
    assert isinstance(bridle.in_force("autonomous", its).judge(call), Allowed)
    address = Address(
        pid=1, url="http://127.0.0.1:45678", socket="/run/b/bridle.sock", version="1", started=0.0
    )
    write_address(home, address)
    by_socket = Call("Bash", {"command": "curl --unix-socket /run/b/bridle.sock http://x/"})
    of_home = Call("Read", {"file_path": str(home / "token")})
    for force in (bridle.in_force("autonomous", its), in_force("autonomous", elsewhere, home)):
        for one in (call, by_socket, of_home):
            assert isinstance(force.judge(one), Asked)
    assert isinstance(bridle.in_force("autonomous", elsewhere).judge(call), Allowed)


def test_the_usual_home_is_guarded_beside_another_one(tmp_path: Path) -> None:
    its = bridle.LaunchSpec(cwd=tmp_path, env={"HOME": "/home/me"})
    for home in (None, tmp_path / "other"):
        force = in_force("autonomous", its, home)
        token = Call("Read", {"file_path": "/home/me/.bridle/token"})
        assert isinstance(force.judge(token), Asked), home


def test_a_link_behind_what_is_not_there_is_followed(tmp_path: Path) -> None:
    """Tools that take `..` away by themselves get there."""
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "k").write_text("x")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "out").symlink_to(tmp_path)
    (tmp_path / "work" / "link").symlink_to(tmp_path / "secrets")
    spec = bridle.LaunchSpec(cwd=tmp_path / "work")
    force = bridle.in_force("edits", spec)
    rules = bridle.Policy("autonomous", deny=[f"Read(/{tmp_path}/secrets/**)"])
    denying = bridle.in_force(rules, spec)
    for path in ("out/a", "nope/../out/a", "a/b/../../out/a", "nope/./../out/a"):
        assert isinstance(force.judge(Call("Write", {"file_path": path})), Asked), path
    for path in ("link/k", "nope/../link/k", "a/b/../../link/k"):
        assert isinstance(denying.judge(Call("Read", {"file_path": path})), Denied), path
        assert isinstance(denying.judge(bash(f"mkdir nope; cat {path}")), Denied), path
