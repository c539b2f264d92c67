"""The server by the command: started, found, started behind, ended, in the way of another."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from bridle.cli.client.find import answers
from bridle.cli.detaching import _is_gone
from bridle.home.files import write_private
from tests.process.children import marked

from .shells import COMMAND, LIMIT, PROMPT, TURN, Shell


def test_up_says_where_it_is_and_ctrl_c_ends_it(shell: Shell) -> None:
    told = shell.up()
    assert told["home"] == str(shell.home)
    assert told["recovered"]["alive"] == []
    assert httpx.get(told["url"] + "/api/v1/me").status_code == 401
    token = (shell.home / "token").read_text().strip()
    me = httpx.get(told["url"] + "/api/v1/me", headers={"Authorization": f"Bearer {token}"})
    assert me.json()["role"] == "person"
    assert shell.end_server() == 0


def test_the_address_that_is_printed_lets_a_browser_in_once(shell: Shell) -> None:
    told = shell.up()
    for address in (shell.run("url").strip(), shell.json("url")["url"]):
        with httpx.Client(trust_env=False, verify=False) as browser:
            assert browser.get(address).status_code == 303
            assert browser.get(told["url"] + "/api/v1/me").json()["via"] == "web"
            assert browser.get(address).status_code >= 400
    assert shell.run("url").startswith(told["url"])


@pytest.mark.parametrize("words", [("up",), ("up", "--json"), ("up", "--detach"), ("demo",)])
def test_what_goes_into_a_pipe_or_a_file_lets_nobody_in(
    shell: Shell, words: tuple[str, ...]
) -> None:
    told = shell.folder / "told"
    with told.open("w") as file:
        server = shell.start(*words, "--port", "0", stdout=file, stderr=file)
    wait_for(lambda: "http://127.0.0.1" in told.read_text() or server.poll() is not None)
    if "--detach" in words:
        server.wait()
        shell.run("down")
    else:
        server.send_signal(signal.SIGINT)
        server.wait()
    written = [file for file in shell.folder.rglob("*") if file.is_file()]
    assert [file for file in written if b"ticket=" in file.read_bytes()] == []
    assert "--json" in words or "bridle url" in told.read_text()


def test_on_a_terminal_it_says_what_to_open(shell: Shell) -> None:
    ours, theirs = os.openpty()
    server = shell.start("up", "--port", "0", stdout=theirs, stderr=subprocess.DEVNULL)
    os.close(theirs)
    said = b""
    while b"Ctrl-C" not in said:
        said += os.read(ours, 4096)
    server.send_signal(signal.SIGINT)
    server.wait()
    os.close(ours)
    assert re.search(rb"Open http://127\.0\.0\.1:\d+/login\?ticket=\S+", said)


def test_a_browser_is_given_a_file_and_no_ticket(shell: Shell) -> None:
    told = shell.up()
    seen = shell.folder / "seen"
    browser = shell.folder / "browser"
    browser.write_text(f"#!/bin/sh\nprintf %s \"$*\" > '{seen}.new'; mv '{seen}.new' '{seen}'\n")
    browser.chmod(0o700)
    shell.env["BROWSER"] = f"{browser} %s"
    said = shell.run("url", "--open")
    wait_for(seen.exists)
    file = shell.home / "login.html"
    assert "ticket" not in said
    assert seen.read_text() == file.as_uri()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    [address] = set(re.findall(r"http:[^\"]+", file.read_text()))
    with httpx.Client(trust_env=False, verify=False) as client:
        answer = client.get(address, headers={"Sec-Fetch-Site": "cross-site"})
        assert (answer.status_code, answer.headers["refresh"]) == (200, "0; url=/")
        assert client.get(told["url"] + "/api/v1/me").json()["via"] == "web"


def wait_for(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_unit_serves_the_home_and_does_not_end_its_agents(shell: Shell) -> None:
    shell.env["BRIDLE_HOME"] = str(shell.folder / "100% mine")
    unit = shell.run("up", "--unit")
    home = str(shell.folder / "100%% mine")
    assert f'\nExecStart={sys.executable} -P -m bridle.cli --home "{home}" up\n' in unit
    assert "\nKillMode=process\n" in unit
    assert "bridle up --unit > " in unit
    assert re.findall("@[A-Z]+@", unit) == []
    assert shell.json("up", "--unit") == {"unit": unit}
    assert not (shell.folder / "100% mine").exists()


def test_a_second_server_of_the_same_home_is_refused_and_says_where_the_first_is(
    shell: Shell,
) -> None:
    shell.up()
    said = shell.run("up", "--port", "0", code=5)
    assert "is up already; `bridle url` says where, `bridle down` ends it" in said


def test_a_port_in_use_is_one_line_with_what_to_do(shell: Shell) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        said = shell.run("up", "--port", str(taken.getsockname()[1]), code=1)
    assert "is in use by another program" in said
    assert "--port" in said


def test_an_address_that_others_reach_needs_a_flag(shell: Shell) -> None:
    said = shell.run("up", "--host", "0.0.0.0", "--port", "0", code=1)
    assert "--allow-remote" in said


@pytest.mark.slow
def test_detached_it_runs_on_until_down_ends_it(shell: Shell) -> None:
    done = shell.done("up", "--detach", "--port", "0", "--json")
    told = json.loads(done.stdout)
    assert told["pid"] in marked(shell.mark)
    log = shell.home / "server.log"
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert httpx.get(told["url"] + "/api/v1/me").status_code == 401
    assert shell.json("down") == {"pid": told["pid"], "stopped_agents": 0}
    assert marked(shell.mark) == []
    assert shell.run("down", code=3) == "bridle: no server is up; start one with `bridle up`\n"


@pytest.mark.parametrize("name", ["typer", "msgspec", "bridle"])
def test_detached_it_runs_nothing_of_the_current_folder(shell: Shell, name: str) -> None:
    """An agent may have put it there, and would have a person's rights."""
    (shell.work / f"{name}.py").write_text(f"open({str(shell.folder / 'ran')!r}, 'w')")
    shell.run("up", "--detach", "--port", "0")
    shell.run("down")
    assert not (shell.folder / "ran").exists()


def test_detached_it_follows_no_link_of_its_home(shell: Shell) -> None:
    shell.home.mkdir(mode=0o700)
    kept = shell.folder / "kept"
    kept.write_text("mine")
    (shell.home / "server.log").symlink_to(kept)
    assert "server.log" in shell.run("up", "--detach", "--port", "0", code=1)
    assert kept.read_text() == "mine"


@pytest.mark.parametrize("words", [["up", "--detach", "--port", "0"], ["demo"]])
def test_nothing_is_written_to_a_home_that_others_can_write_to(
    shell: Shell, words: list[str]
) -> None:
    shell.home.mkdir()
    shell.home.chmod(0o777)
    said = shell.run("--home", str(shell.home), *words, code=1)
    assert "others can write to it" in said
    assert list(shell.home.iterdir()) == []
    assert not shell.home.with_name("home-work").exists()


def test_detached_it_says_why_it_can_not_start(shell: Shell) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        said = shell.run("up", "-d", "--port", str(taken.getsockname()[1]), code=1)
    assert "is in use by another program" in said
    assert said.count("\n") == 1
    assert marked(shell.mark) == []


def test_down_ends_who_listens_and_not_whom_a_file_names(shell: Shell) -> None:
    """A file that was left behind names a process that is another one by now."""
    told = shell.up()
    hint = shell.home / "server.json"
    wrong = json.loads(hint.read_text()) | {"pid": os.getpid()}
    hint.write_text(json.dumps(wrong))
    assert shell.json("down")["pid"] == told["pid"]


def test_a_server_that_was_killed_is_not_taken_for_one_that_is_up(shell: Shell) -> None:
    shell.up()
    shell.kill_server()
    assert (shell.home / "bridle.sock").exists()
    assert "no server is up" in shell.run("stop", "x", code=3)
    shell.up()
    assert shell.end_server() == 0


def test_the_end_of_its_terminal_ends_it_in_good_order(shell: Shell) -> None:
    shell.up()
    assert shell.end_server(signal.SIGHUP) == 0
    assert not (shell.home / "bridle.sock").exists()


def test_settings_reach_the_server_by_flag_variable_and_file(shell: Shell) -> None:
    shell.home.mkdir(mode=0o700)
    (shell.home / "bridle.toml").write_text('host = "localhost"\n')
    told = shell.up()
    assert told["url"].startswith("http://localhost:")


def test_a_home_with_a_long_path_is_served_and_found(shell: Shell) -> None:
    shell.env["BRIDLE_HOME"] = str(shell.folder / ("long" * 40))
    told = shell.up()
    assert not told["socket"].startswith(shell.env["BRIDLE_HOME"])
    assert shell.run("url").startswith(told["url"])


def has_home(shell: Shell) -> None:
    """A server has been up."""
    shell.up()
    assert shell.end_server() == 0


#: Only root can give a folder to another.
FOREIGN = ["open to others", "of another"] if os.geteuid() == 0 else ["open to others"]


@pytest.mark.parametrize("how", FOREIGN)
def test_a_listener_that_may_be_anybodys_is_told_nothing(shell: Shell, how: str) -> None:
    """What a killed server has written down names a folder that others may have made since."""
    has_home(shell)
    with (
        tempfile.TemporaryDirectory(dir="/tmp", prefix="bridle-") as name,
        socket.socket(socket.AF_UNIX) as listener,
    ):
        folder = Path(name)
        listener.bind(f"{folder}/bridle.sock")
        listener.listen()
        listener.setblocking(False)
        left = {"pid": 1, "url": "", "socket": f"{folder}/bridle.sock", "version": "", "started": 0}
        write_private(shell.home / "server.json", json.dumps(left))
        assert answers(folder / "bridle.sock")
        listener.accept()[0].close()
        if how == "open to others":
            folder.chmod(0o777)
        else:
            os.chown(folder, 65534, -1)
        assert "no server is up" in shell.run("stop", "x", code=3)
        assert "no server is up" in shell.run("down", code=3)
        assert shell.json("ps") == []
        with pytest.raises(BlockingIOError):
            listener.accept()


@pytest.mark.slow
def test_an_agent_is_nobody_in_its_home_while_no_server_is_up(shell: Shell) -> None:
    """Neither with the mark of its launch, nor without, below a process that has it."""
    has_home(shell)
    (shell.home / "spool" / "l1").mkdir()
    shell.env["BRIDLE_LAUNCH"] = "above/l1"
    said = shell.run("trust", "--yes", code=1)
    assert "this is an agent's process" in said
    words = [*COMMAND, "token", "new", "--name", "mine"]
    script = f"env -u BRIDLE_LAUNCH {shlex.join(words)}; exit $?"
    done = subprocess.run(
        ["sh", "-c", script], env=shell.env, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "this is an agent's process" in done.stderr
    shell.env["BRIDLE_LAUNCH"] = "of-another-home"
    assert "nothing" in shell.run("trust", "--yes")


def test_nor_if_it_has_taken_its_spool_away(shell: Shell) -> None:
    """What is stored names its launch as well."""
    shell.claude(*TURN, PROMPT)
    shell.up()
    shell.run("start", "go", "--name", "a")
    shell.session("a", "idle")
    (spool,) = (shell.home / "spool").iterdir()
    shell.kill_server()
    shell.env["BRIDLE_LAUNCH"] = spool.name
    shutil.rmtree(spool)
    assert "this is an agent's process" in shell.run("trust", "--yes", code=1)
    assert "this is an agent's process" in shell.run("up", "--port", "0", code=1)


@pytest.mark.slow
def test_nor_who_can_not_be_told_from_one(shell: Shell) -> None:
    """Its parent has ended before it was looked at, or is hidden."""
    has_home(shell)
    code = (
        "import sys; from bridle.server import peers; see = peers.see;"
        "from os import getpid as me;"
        "peers.see = lambda pid, **how: see(pid, **how) if pid == me() else None;"
        "from bridle.cli.main import run; sys.exit(run(sys.argv[1:]))"
    )
    words = [sys.executable, "-c", code, "trust", "list"]
    done = subprocess.run(words, env=shell.env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "it can't be told whether this is an agent's process" in done.stderr


def test_where_no_descriptor_tells_of_its_end_a_process_is_looked_for() -> None:
    child = subprocess.Popen(["sleep", "60"])
    try:
        assert not _is_gone(child.pid, 0.01)
    finally:
        child.kill()
    ending = threading.Thread(target=child.wait)
    ending.start()
    assert _is_gone(child.pid, LIMIT)
    ending.join()
