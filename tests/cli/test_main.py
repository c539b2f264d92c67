"""The command as a whole: help, errors on one line, exit codes, colours, pipes, start-up."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer

from bridle import __version__
from bridle.cli import main as cli
from bridle.cli.errors import NotNow, Refused, one_line
from bridle.cli.main import Commands, app, run

COMMAND = [sys.executable, "-m", "bridle.cli"]


def tree(command: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command with its words, groups too."""
    command = command or typer.main.get_command(app)
    yield path, command
    if hasattr(command, "list_commands"):
        for name in command.list_commands(None):
            yield from tree(command.get_command(None, name), (*path, name))


LEAVES = [(path, command) for path, command in tree() if not hasattr(command, "list_commands")]


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """A user with nothing but a PATH."""
    home = tmp_path / "user"
    home.mkdir()
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "CLAUDE_CONFIG_DIR": str(home / ".claude"),
        "BRIDLE_HOME": str(tmp_path / "home"),
    }


def bridle(env: dict[str, str], *words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *words], env=env, capture_output=True, text=True, timeout=60, check=False,
        stdin=subprocess.DEVNULL, **options,
    )  # fmt: skip


@pytest.mark.parametrize(("path", "command"), LEAVES, ids=[" ".join(path) for path, _ in LEAVES])
def test_every_command_has_a_help_with_an_example_and_json(
    path: tuple[str, ...], command: Any
) -> None:
    words = " ".join(("bridle", *path))
    assert command.help, words
    lines = re.findall(r"\[cyan\](.*?)\[/cyan\]", command.epilog or "")
    # In some the command stands behind a pipe, or without the name of a group's first command.
    names = (words, words.removesuffix(" list"), words.removesuffix(" add"))
    assert any(name in line for name in names for line in lines), f"{words} has no example"
    assert any("--json" in param.opts for param in command.params), f"{words} has no --json"
    for param in command.params:
        assert param.help, f"{words}: {param.name} has no help"


def test_the_table_of_modules_is_what_they_register() -> None:
    for home, names in Commands.homes.items():
        made = typer.Typer()
        import_module(f"bridle.cli.{home}").add_to(made)
        assert set(typer.main.get_group(made).commands) == set(names)


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"], ["policy"], ["ps", "--help"]])
def test_help_is_for_the_asking_and_no_mistake(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == 0
    said = capsys.readouterr()
    assert "Usage: bridle" in said.out
    assert said.err == ""


@pytest.mark.parametrize(
    ("command", "usage"),
    [
        ("stop", "bridle stop [OPTIONS] SESSION..."),
        ("send", "bridle send [OPTIONS] SESSION [PROMPT]"),
        ("replay", "bridle replay [OPTIONS] FILE"),
    ],
)
def test_a_help_is_free_of_braces_and_types_of_switches(
    command: str, usage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([command, "--help"]) == 0
    told = capsys.readouterr().out
    assert usage in [line.strip().removeprefix("Usage: ") for line in told.splitlines()]
    assert "<bool>" not in told


def test_the_version_is_said_in_either_way(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"bridle {__version__}\n"
    assert run(["version", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["version"] == __version__


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["strat"], 2, "No such command 'strat'. Did you mean 'start'"),
        (["ps", "--nope"], 2, "No such option: --nope; see `bridle ps --help`"),
        (["stop"], 2, "Missing argument 'SESSION'; see `bridle stop --help`"),
        (["--config", "/none", "config", "show"], 1, "/none: there is no such file of settings"),
        (["stop", "x"], 3, "no server is up; start one with `bridle up`"),
        (["start", "x", "--cwd", "/none"], 2, "there is no folder /none; give one that is there"),
        (["start", "x", "--env", "NONE_SUCH"], 2, "NONE_SUCH is not set here"),
        (["start", " "], 2, "the prompt is empty; say what the agent is to do"),
        (["policy", "check", "/none.toml"], 4, "there is no file /none.toml; give the path"),
        (["ps", "--filter", "state=runing"], 2, "there is no state 'runing'; the states are"),
        (["start", "x", "--max-cost", "-1"], 2, "greater than or equal to 0"),
        (["set", "x", "--max-tokens", "-1"], 2, "greater than or equal to 0"),
        (["ps", "--home", "x"], 2, "--home goes before the command: bridle --home … ps"),
        (["policy", "list", "--url", "x"], 2, "before the command: bridle --url … policy list"),
        (["--url", "http://127.0.0.1:9", "ps"], 3, "see whether it runs, and whether --url"),
    ],
)
def test_an_error_is_one_line_with_what_to_do_and_has_its_code(
    words: list[str],
    code: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("BRIDLE_HOME", str(tmp_path))
    assert run(words) == code
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("bridle: ")
    assert said in told.err
    assert told.err.count("\n") == 1


def test_a_mistake_of_ours_is_one_line_too_and_a_traceback_with_debug(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(cli, "app", broken)
    assert run(["ps"]) == 1
    told = capsys.readouterr().err
    assert "a mistake in Bridle itself: ZeroDivisionError: oh; run it again with" in told
    assert told.count("\n") == 1
    assert run(["--debug", "ps"]) == 1
    told = capsys.readouterr().err
    assert "Traceback" in told
    assert "ZeroDivisionError: oh" in told


@pytest.mark.parametrize(("words", "code"), [(["stop", "x"], 3), (["ps", "--nope"], 2)])
def test_debug_changes_no_exit_code(
    words: list[str], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BRIDLE_HOME", str(tmp_path))
    assert run(words) == code
    assert run(["--debug", *words]) == code


@pytest.mark.parametrize(
    "words",
    [["ps"], ["approvals"], ["usage"], ["logs", "x"], ["token", "list"],
     ["trust", "list"], ["audit", "verify"], ["policy", "rules", "--json"]],
)  # fmt: skip
def test_to_look_at_a_home_that_is_not_there_makes_none(
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    home = tmp_path / "none"
    monkeypatch.setenv("BRIDLE_HOME", str(home))
    assert run(words) == 3
    told = capsys.readouterr()
    assert (told.out, told.err) == (
        "",
        f"bridle: there is no home at {home}; `bridle up` makes it\n",
    )
    assert not home.exists()


def test_a_list_says_once_that_no_server_is_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BRIDLE_HOME", str(tmp_path / "home"))
    assert run(["token", "new", "--name", "x"]) == 0  # what is to be kept makes one
    capsys.readouterr()
    assert run(["token", "list", "--json"]) == 0
    roles = {one["name"]: one["role"] for one in json.loads(capsys.readouterr().out)}
    assert roles["x"] == "reader"  # nobody may decide who was not said to
    for words in (["ps"], ["approvals"]):
        assert run(words) == 0
        assert capsys.readouterr().err.count("no server is up: this is the last that is known") == 1
        assert run([*words, "--json"]) == 0
        assert capsys.readouterr() == ("[]\n", "")


def test_ctrl_c_is_130_and_says_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "app", interrupted)
    assert run(["ps"]) == 130
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("status", "code"), [(404, 4), (409, 5), (503, 5), (429, 5), (400, 1), (403, 1), (500, 1)]
)
def test_what_the_server_refuses_has_the_code_of_its_kind(status: int, code: int) -> None:
    assert Refused(status, "x", "No.", "Do this.").exit_code == code


def test_what_the_server_refuses_is_told_as_somebody_types_it() -> None:
    id_ = "0195d7a2-1111-7222-8333-444455556666"
    words = f"Stop: not possible while session {id_} is stopped."
    refused = Refused(409, "not_possible", words, "Resume it.", {"session": id_})
    assert str(refused) == "Stop: not possible while session 0195d7a2 is stopped; resume it"
    assert "session fixer is stopped" in str(refused.called("fixer"))
    assert str(refused.called("0195d7a2-11")) == str(refused)
    taken = f"Session {id_} has the name 'x'; choose another one."
    assert str(Refused(409, "name_taken", taken, "Choose another name.")).endswith("another one")
    assert "set BRIDLE_TOKEN" in str(Refused(401, "unauthorized", "No.", "Send a header."))
    launch = "A launch has no option 'x': docs/sessions.md has them all."
    told = Refused(400, "invalid_launch", launch, "docs/sessions.md has all options.")
    assert str(told).count("docs/sessions.md") == 1


def test_what_is_missing_is_told_with_the_command_that_gives_it() -> None:
    from bridle.cli.commands.sessions import _with_what_is_missing

    about = {"names": {"KEY": "never stored"}}
    refused = Refused(409, "missing_variables", "They are missing.", "Give `env`.", about)
    told = _with_what_is_missing(refused, "fixer")
    assert str(told) == (
        "variables are missing: KEY (never stored); `bridle resume fixer --env KEY=…`"
    )
    assert told.exit_code == 5


def test_words_and_remedy_are_joined_into_one_line() -> None:
    assert one_line("There is none.", "Make one.") == "There is none; make one"
    assert one_line("two\nlines", "") == "two lines"
    assert one_line("It is so", "`bridle up` helps") == "It is so; `bridle up` helps"
    assert one_line("It is so", "API keys help") == "It is so; API keys help"
    assert one_line("stop it first", "Stop it first") == "stop it first"
    assert str(NotNow("It runs.", "Stop it.")) == "It runs; stop it"


# --- as a process


def test_the_command_runs_as_a_module(env: dict[str, str]) -> None:
    done = bridle(env, "version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"bridle {__version__} (Python ")


def test_a_reader_that_goes_away_is_no_error(env: dict[str, str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*COMMAND, "config", "show"], env=env, stdout=writer, stderr=-1, timeout=60, check=False
    )
    os.close(writer)
    assert b"Traceback" not in done.stderr
    assert b"Broken" not in done.stderr
    assert done.returncode == 0


def on_a_terminal(env: dict[str, str], *words: str) -> str:
    """What somebody sees who types this."""
    master, slave = pty.openpty()
    with subprocess.Popen([*COMMAND, *words], env=env, stdin=slave, stdout=slave, stderr=slave):
        os.close(slave)
        seen = b""
        while True:
            try:
                more = os.read(master, 65536)
            except OSError:  # so does a terminal end whose other side is closed
                break
            if not more:
                break
            seen += more
    os.close(master)
    return seen.decode()


@pytest.mark.slow
def test_there_are_colours_on_a_terminal_alone_and_not_with_no_color(env: dict[str, str]) -> None:
    escape = "\x1b["
    terminal = {**env, "TERM": "xterm-256color"}
    assert escape in on_a_terminal(terminal, "doctor")
    assert f"{escape}32m" not in on_a_terminal({**terminal, "NO_COLOR": "1"}, "doctor")
    assert escape not in bridle(terminal, "doctor").stdout


def test_into_a_pipe_goes_a_line_for_each_row(env: dict[str, str]) -> None:
    done = bridle({**env, "BRIDLE_CLAUDE": "x" * 300}, "config", "show")
    (row,) = [line for line in done.stdout.splitlines() if line.startswith("claude ")]
    assert "x" * 300 in row
    assert row.endswith("BRIDLE_CLAUDE")


@pytest.mark.parametrize(
    ("words", "heavy"),
    [
        ("version", {"asyncio", "rich", "pydantic", "msgspec", "httpx", "litestar", "sqlite3"}),
        ("stop x", {"rich", "litestar", "uvicorn", "sqlite3", "bridle.supervisor.supervisor"}),
        ("policy check ask", {"httpx", "litestar", "uvicorn", "sqlite3"}),
    ],
)
def test_a_command_loads_no_more_than_it_needs(
    env: dict[str, str], words: str, heavy: set[str]
) -> None:
    code = (
        "import sys, json; from bridle.cli.main import run; run(sys.argv[1:]);"
        "print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words.split()],
        env=env, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert set(json.loads(done.stdout.splitlines()[-1])) & heavy == set()


@pytest.mark.slow
def test_completion_offers_commands_options_and_says_nothing_when_it_can_not_know(
    env: dict[str, str],
) -> None:
    def offered(line: str) -> list[str]:
        words = {"_BRIDLE_COMPLETE": "complete_bash", "COMP_WORDS": line}
        count = str(len(line.split()) - (0 if line.endswith(" ") else 1))
        done = bridle({**env, **words, "COMP_CWORD": count})
        assert done.stderr == ""
        return done.stdout.split()

    assert set(offered("bridle app")) == {"approvals", "approve"}
    assert "--policy" in offered("bridle start --p")
    assert offered("bridle stop ") == []
    assert "read-only" in offered("bridle policy show re")
