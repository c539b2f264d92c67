"""Settings: which value counts, where it came from, and what is refused."""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path

import pytest

from bridle.config import SETTINGS, InvalidSetting, Settings, load


def home_with(folder: Path, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "bridle.toml").write_text(text)
    return folder


def test_without_anything_the_defaults_hold_and_say_so() -> None:
    settings = load({}, {"HOME": "/nowhere"})
    assert settings.port == 7717
    assert settings.host == "127.0.0.1"
    assert settings.policy == "ask"
    assert set(settings.sources.values()) == {"default"}
    assert settings.file is None


def test_a_flag_counts_more_than_the_environment_and_that_more_than_the_file(
    tmp_path: Path,
) -> None:
    home = home_with(tmp_path / "home", 'port = 1\nsize = 2\npolicy = "edits"\n')
    environ = {"BRIDLE_HOME": str(home), "BRIDLE_PORT": "10", "BRIDLE_SIZE": "20"}
    settings = load({"port": 100, "model": None}, environ)
    assert (settings.port, settings.size, settings.policy) == (100, 20, "edits")
    assert settings.sources["port"] == "flag --port"
    assert settings.sources["size"] == "BRIDLE_SIZE"
    assert settings.sources["policy"] == str(home / "bridle.toml")
    assert settings.sources["model"] == "default"


def test_the_file_is_looked_for_in_the_home_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repository that brings one changes nothing."""
    repository = home_with(tmp_path / "repo", 'claude = "./evil"\nport = 1\n')
    monkeypatch.chdir(repository)
    settings = load({}, {"BRIDLE_HOME": str(tmp_path / "home")})
    assert settings.claude is None
    assert settings.port == 7717


def test_another_file_can_be_named(tmp_path: Path) -> None:
    home_with(tmp_path, "port = 4000\n")
    environ = {"BRIDLE_HOME": str(tmp_path / "home")}
    file = tmp_path / "bridle.toml"
    assert load({}, environ, file).port == 4000
    assert load({}, {**environ, "BRIDLE_CONFIG": str(file)}).port == 4000
    with pytest.raises(InvalidSetting, match="there is no such file of settings"):
        load({}, environ, tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("prot = 1", "there is no setting 'prot'; did you mean 'port'?"),
        ("allow-remote = true", "did you mean 'allow_remote'?"),
        ("xyzzy = 1", "there is no setting 'xyzzy': use host, port"),
        ('home = "/x"', "home can't be set in a file: use --home or BRIDLE_HOME"),
        ('token = "t"', "token can't be set in a file"),
        ("port = 70000", "70000 is no port"),
        ("port = -1", "-1 is too little: 0 is the least"),
        ("size = 0", "0 is too little: 1 is the least"),
        ("size = 1.5", "1.5 will not do: it takes a whole number"),
        ("size = true", "True will not do: it takes a whole number"),
        ("stop_agents = 1", "1 will not do: it takes true or false"),
        ('stop_agents = "maybe"', "'maybe' will not do"),
        ('mode = "wild"', "'wild' will not do: use default, acceptEdits, plan"),
        ("mode = 1", "1 will not do: it takes default, acceptEdits"),
        ('free_bytes = "lots"', "it takes a number of bytes, or one with a unit"),
        ('expires_in = "soon"', "it takes a number of seconds"),
        ("expires_in = nan", "it takes a number of seconds"),
        ('policy = ""', "'' will not do: it takes a text"),
        ("port = ", "it is no TOML"),
    ],
)
def test_what_a_file_must_not_say_is_refused_with_its_name(
    tmp_path: Path, text: str, reason: str
) -> None:
    home = home_with(tmp_path, text)
    with pytest.raises(InvalidSetting) as raised:
        load({}, {"BRIDLE_HOME": str(home)})
    assert reason in str(raised.value)
    assert str(home / "bridle.toml") in str(raised.value)


@pytest.mark.parametrize("mode", [0o664, 0o602])
def test_a_file_that_others_can_write_is_refused(tmp_path: Path, mode: int) -> None:
    file = home_with(tmp_path, 'claude = "./evil"') / "bridle.toml"
    file.chmod(mode)
    with pytest.raises(InvalidSetting, match=f"others can write to it; `chmod go-w {file}`"):
        load({}, {"BRIDLE_HOME": str(tmp_path)})
    file.chmod(0o644)
    assert load({}, {"BRIDLE_HOME": str(tmp_path)}).claude == "./evil"


@pytest.mark.parametrize(("owner", "is_taken"), [(1000, True), (0, True), (1001, False)])
def test_a_file_is_its_owners_or_roots(tmp_path: Path, owner: int, is_taken: bool) -> None:
    file = home_with(tmp_path, "") / "bridle.toml"
    told = os.stat_result([0o100644, 0, 0, 1, owner, owner, 0, 0, 0, 0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: 1000)
        patch.setattr(os, "fstat", lambda _: told)
        if is_taken:
            assert load({}, {"BRIDLE_HOME": str(tmp_path)}).file == file
        else:
            with pytest.raises(InvalidSetting, match="it belongs to another user"):
                load({}, {"BRIDLE_HOME": str(tmp_path)})


def test_what_is_no_file_can_be_named_as_one() -> None:
    assert load({}, {}, "/dev/null").port == 7717


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("free_bytes", "1024", 1024),
        ("free_bytes", "256MB", 256 * 1024 * 1024),
        ("free_bytes", "1.5 GiB", 3 * 1024**3 // 2),
        ("stop_agents", "No", False),
        ("stop_agents", "1", True),
        ("expires_in", "90", 90.0),
        ("home", "~/x", Path.home() / "x"),
        ("claude", "npx claude", "npx claude"),
    ],
)
def test_a_variable_is_read_as_what_the_setting_is(name: str, text: str, value: object) -> None:
    assert getattr(load({}, {f"BRIDLE_{name.upper()}": text}), name) == value


def test_a_variable_that_is_empty_is_as_good_as_none() -> None:
    assert load({}, {"BRIDLE_PORT": ""}).sources["port"] == "default"


def test_the_token_is_never_among_what_is_shown() -> None:
    settings = load({}, {"BRIDLE_TOKEN": "s3cret"})
    assert settings.token == "s3cret"
    assert "s3cret" not in str(settings.values())
    assert settings.values()["token"] == "(set)"


def test_the_table_and_the_values_have_the_same_names_and_types() -> None:
    values = {field.name for field in fields(Settings)} - {"sources", "file"}
    assert {setting.name for setting in SETTINGS} == values
    assert all(setting.words.endswith(".") for setting in SETTINGS)


def test_every_flag_that_is_given_holds_also_one_of_nothing(tmp_path: Path) -> None:
    flags = {"home": tmp_path, "port": 0, "model": None, "size": 7, "stop_agents": False}
    environ = {
        "BRIDLE_PORT": "9",
        "BRIDLE_MODEL": "m",
        "BRIDLE_STOP_AGENTS": "1",
        "BRIDLE_SIZE": "",
    }
    found = load(flags, environ)
    assert (found.port, found.size, found.stop_agents, found.model) == (0, 7, False, "m")
    assert [found.sources[name] for name in ("port", "size", "stop_agents", "model", "host")] == [
        *("flag --port", "flag --size", "flag --stop-agents", "BRIDLE_MODEL", "default"),
    ]
