"""A CLI over pipes has a session and a guardian of its own, and dies with its controller."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bridle.errors import InvalidLaunch, LaunchFailed
from bridle.process.fork_client import Guarded, start_guarded

from .children import LIMIT, end_guarded, gone, is_alive, program, python

Run = Callable[..., Guarded]


@pytest.fixture
def run() -> Iterator[Run]:
    """Starts a child; ends it, and closes its pipes."""
    # The first one starts the fork server, which stays.
    end_guarded(start_guarded(["true"], dict(os.environ)))
    started: list[Guarded] = []

    def run(argv: list[str], cwd: Path | None = None, **env: str) -> Guarded:
        started.append(start_guarded(argv, {**os.environ, **env}, cwd))
        return started[-1]

    yield run
    for child in started:
        end_guarded(child)


def output(child: Guarded) -> str:
    """All that it writes."""
    with open(child.stdout, "rb", closefd=False) as file:
        return file.read().decode()


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_child_leads_its_own_session_and_is_the_process_that_was_started(run: Run) -> None:
    child = run(python("import os, sys; print(os.getpid()); sys.stdout.flush(); os.read(0, 1)"))
    with open(child.stdout, "rb", closefd=False) as file:
        assert int(file.readline()) == child.pid
    assert os.getsid(child.pid) == os.getpgid(child.pid) == child.pid != os.getsid(0)


def test_words_environment_and_folder_arrive_as_they_are(run: Run, tmp_path: Path) -> None:
    code = "import os, sys; print(sys.argv[1:], os.environ['X'], os.getcwd())"
    words = ["--flag=a b", "", "ä\n'\"$HOME"]
    child = run(python(code, *words), tmp_path, X="given")
    assert output(child) == f"{words} given {tmp_path}\n"


def test_a_child_has_none_of_our_files(run: Run) -> None:
    with Path(os.devnull).open() as ours:
        os.set_inheritable(ours.fileno(), True)
        child = run(python("import os; print(sorted(os.listdir('/proc/self/fd'))[:4])"))
        # The fourth is the listing itself.
        assert output(child) == "['0', '1', '2', '3']\n"


def test_a_program_is_found_on_the_path_of_the_child(run: Run, tmp_path: Path) -> None:
    program(tmp_path / "only-here", "#!/bin/sh\necho found\n")
    child = run(["only-here"], PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert output(child) == "found\n"


def test_a_relative_program_is_not_looked_for_in_the_folder_of_the_child(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "tool", "#!/bin/sh\necho ours\n")
    program(tmp_path / "agent" / "tool", "#!/bin/sh\necho theirs\n")
    monkeypatch.chdir(tmp_path)
    assert output(run(["./tool"], tmp_path / "agent")) == "ours\n"


def test_a_missing_folder_is_told_and_nothing_leaks(run: Run, tmp_path: Path) -> None:
    before = open_files()
    with pytest.raises(InvalidLaunch, match="there is no such folder"):
        run(["true"], tmp_path / "none")
    (tmp_path / "file").touch()
    with pytest.raises(InvalidLaunch, match="there is no such folder"):
        run(["true"], tmp_path / "file")
    assert open_files() == before


@pytest.mark.parametrize("name", ["none", "plain", "folder"])
def test_what_can_not_be_run_is_told_and_nothing_leaks(run: Run, tmp_path: Path, name: str) -> None:
    (tmp_path / "plain").write_text("#!/bin/sh\n")
    (tmp_path / "folder").mkdir()
    before = open_files()
    with pytest.raises(LaunchFailed, match=rf"can't start .*{name}: there is no such program"):
        run([str(tmp_path / name)])
    assert open_files() == before


def test_what_the_system_refuses_is_told_and_nothing_leaks(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = open_files()
    with pytest.raises(LaunchFailed, match="can't start true: embedded null byte"):
        run(["true", "\0"])
    with pytest.raises(LaunchFailed, match=r"can't start true: .*Argument list too long"):
        run(["true", "x" * 10_000_000])

    pipes: list[int] = []

    def two_pipes(make: Callable[[], tuple[int, int]] = os.pipe) -> tuple[int, int]:
        pipes.append(1)
        if len(pipes) > 2:
            raise OSError(24, "Too many open files")
        return make()

    monkeypatch.setattr("os.pipe", two_pipes)
    with pytest.raises(LaunchFailed, match="Too many open files"):
        run(["true"])
    assert open_files() == before


PARENT = """
import asyncio, os, sys
from bridle.process.child import ChildProcess
from bridle.process.spec import LaunchSpec

class Quiet:
    def received(self, data): print(child.pid, flush=True)
    def complained(self, text): pass
    def ended(self): pass

async def main():
    global child
    child = ChildProcess(LaunchSpec(command=sys.argv[1:]))
    await child.start(Quiet())
    await asyncio.Event().wait()

asyncio.run(main())
"""

# It does not read, so it does not see that its input is closed.
DEAF_TO_THE_END = "import os, time; os.write(1, b'ready\\n'); time.sleep(600)"


async def test_a_child_is_gone_soon_after_its_parent_was_killed(mark: str) -> None:
    words = [sys.executable, "-c", PARENT, *python(DEAF_TO_THE_END)]
    parent = await asyncio.create_subprocess_exec(*words, stdout=subprocess.PIPE)
    assert parent.stdout
    child = int(await asyncio.wait_for(parent.stdout.readline(), LIMIT))
    assert is_alive(child)
    parent.send_signal(signal.SIGKILL)
    assert await gone([child], 5)
    await parent.wait()
