"""The processes of a launch are found wherever they went, and nobody else's are."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from bridle.process import census as census_module
from bridle.process.arguments import MARKER
from bridle.process.census import Look, Seen, look, see
from bridle.process.child import ChildProcess
from bridle.process.tree import Tree, find_tree

from . import trees
from .children import LIMIT, Lifeline, Start, gone, is_alive, program, python

Run = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture(params=["/proc", "psutil"])
def source(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to look at the machine."""
    monkeypatch.setattr(census_module, "ON_LINUX", request.param == "/proc")
    return str(request.param)


@pytest.fixture
def run(mark: str) -> Iterator[Run]:
    """Starts a process that says when it is ready."""
    started: list[subprocess.Popen[bytes]] = []

    def run(code: str = "", **env: str) -> subprocess.Popen[bytes]:
        words = python(f"import os, time\n{code}\nos.write(1, b'.\\n')\ntime.sleep(600)", mark)
        process = subprocess.Popen(words, env={**os.environ, **env}, stdout=subprocess.PIPE)
        started.append(process)
        assert process.stdout
        assert process.stdout.readline() == b".\n"
        return process

    yield run
    for process in started:
        process.kill()
        process.wait()
        assert process.stdout
        process.stdout.close()


def pids(found: list[Seen]) -> set[int]:
    return {seen.pid for seen in found}


def tree_of(child: ChildProcess) -> set[int]:
    """Without the guardian, which belongs to it, too."""
    return pids(child._tree().look()) - {guardian_of(child)}


def guardian_of(child: ChildProcess) -> int:
    assert child._guardian
    return child._guardian.pid


# --- finding


async def test_children_orphans_and_other_sessions_are_found(
    start: Start, lifeline: Lifeline, source: str
) -> None:
    child, heard = await start(trees.abandoning(lifeline))
    left = set(json.loads(await heard.line()))
    assert len(left) == 3
    assert tree_of(child) == {child.pid, *left}


async def test_orphans_are_found_after_the_root_is_gone(
    start: Start, lifeline: Lifeline, source: str
) -> None:
    child, heard = await start(trees.abandoning(lifeline))
    left = set(json.loads(await heard.line()))
    child.close_input()
    assert await child.exited(LIMIT)
    assert tree_of(child) == left


async def test_a_descendant_with_a_cleared_environment_is_found_by_its_parents(
    start: Start, lifeline: Lifeline, source: str
) -> None:
    child, heard = await start(trees.stubborn(lifeline))
    left = set(json.loads(await heard.line()))
    assert left < tree_of(child)


async def test_the_tree_of_another_launch_is_another_tree(
    start: Start, lifeline: Lifeline, source: str
) -> None:
    one, heard_one = await start(trees.abandoning(lifeline))
    two, heard_two = await start(trees.abandoning(lifeline))
    await heard_one.line()
    await heard_two.line()
    assert tree_of(one) & tree_of(two) == set()
    guardian = guardian_of(one)
    born = next(seen.born for seen in find_tree(0, one.launch) if seen.pid == guardian)
    assert Tree(guardian, "no-such-launch", born).look()
    assert find_tree(os.getpid(), "no-such-launch") == []


def test_a_launch_below_another_belongs_to_both(run: Run, mark: str, source: str) -> None:
    inner = run(**{MARKER: f"{mark}-outer/{mark}-inner"})
    outer = run(**{MARKER: f"{mark}-outer"})
    assert pids(find_tree(0, f"{mark}-outer")) == {outer.pid, inner.pid}
    assert pids(find_tree(0, f"{mark}-inner")) == {inner.pid}
    assert pids(find_tree(0, mark)) == set()


async def test_a_number_that_is_not_our_childs_is_not_a_root(
    run: Run, mark: str, source: str
) -> None:
    # A grandchild: its number might once have been that of a root that we have reaped.
    child = run("if os.fork() == 0: time.sleep(600)")
    (grandchild,) = psutil.Process(child.pid).children()
    assert pids(find_tree(grandchild.pid, mark)) == set()
    assert pids(find_tree(child.pid, mark)) == {child.pid, grandchild.pid}
    grandchild.kill()
    assert await gone([grandchild.pid], LIMIT)


def test_a_variable_that_only_looks_like_the_marker_is_none(
    run: Run, mark: str, source: str
) -> None:
    run(**{f"X{MARKER}": mark, "OTHER": f"{MARKER}={mark}", f"{MARKER}_2": mark})
    assert find_tree(0, mark) == []


def test_a_strange_name_does_not_confuse_the_look(run: Run, mark: str, source: str) -> None:
    child = run("open('/proc/self/comm', 'w').write(') Z 1 (')", **{MARKER: mark})
    (found,) = find_tree(0, mark)
    assert (found.pid, found.parent) == (child.pid, os.getpid())


# --- being alive


def test_a_zombie_is_dead(run: Run, mark: str, source: str) -> None:
    child = run(**{MARKER: mark})
    (found,) = find_tree(child.pid, mark)
    assert found.is_alive()
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not found.is_alive()
    assert find_tree(child.pid, mark) == []
    child.wait()
    assert not found.is_alive()


async def test_a_process_whose_first_thread_has_ended_is_alive(run: Run, mark: str) -> None:
    code = (
        "import ctypes, threading\n"
        "def go_on():\n    os.write(1, b'.\\n')\n    time.sleep(600)\n"
        "threading.Thread(target=go_on).start()\n"
        "ctypes.CDLL(None).pthread_exit(None)"
    )
    child = run(code, **{MARKER: mark})
    # To others it is a zombie as soon as that thread is gone.
    assert await gone([child.pid], LIMIT)
    assert child.poll() is None
    assert pids(find_tree(child.pid, mark)) == {child.pid}


def test_a_pid_that_is_used_again_is_another_process_and_is_left_alone(
    run: Run, source: str
) -> None:
    child = run()
    seen = see(child.pid)
    assert seen
    earlier = Seen(seen.pid, seen.born - 1, seen.parent)
    assert not earlier.is_alive()
    earlier.signal(signal.SIGKILL)
    Seen(2**22 + 1, 1, 1).signal(signal.SIGKILL)
    assert child.poll() is None
    assert seen.is_alive()
    seen.signal(signal.SIGKILL)
    assert child.wait(LIMIT) == -signal.SIGKILL


def test_a_process_is_still_when_it_is_stopped_or_gone(run: Run, source: str) -> None:
    child = run("import threading\nthreading.Thread(target=time.sleep, args=[600]).start()")
    seen = see(child.pid)
    assert seen
    assert not seen.is_still()
    seen.signal(signal.SIGSTOP)
    os.waitid(os.P_PID, child.pid, os.WSTOPPED)
    assert seen.is_still()
    seen.signal(signal.SIGCONT)
    os.waitid(os.P_PID, child.pid, os.WCONTINUED)
    assert not seen.is_still()
    child.kill()
    child.wait()
    assert seen.is_still()


# --- looking


def test_a_process_that_becomes_another_program_is_never_taken_for_a_stranger(
    mark: str, tmp_path: Path
) -> None:
    # Each time that it does, its environment is empty for a moment.
    script = '#!/bin/sh\n[ "$1" = 0 ] && echo done && exec sleep 600\nexec "$0" $(($1 - 1))\n'
    words = [program(tmp_path / "again", script), "300"]
    env = {**os.environ, MARKER: mark}
    with subprocess.Popen(words, env=env, stdout=subprocess.PIPE) as child:
        assert child.stdout
        while not select.select([child.stdout], [], [], 0)[0]:
            seen = see(child.pid, marks=True)
            assert seen
            assert seen.launches in ((mark,), None)
        child.kill()


def test_whoever_asked_before_a_look_shares_it_and_nobody_else(run: Run) -> None:
    asked = time.monotonic()
    first = look(asked)
    assert look(asked) is first
    child = run()
    assert look(asked) is first
    later = look(time.monotonic())
    assert later is not first
    assert child.pid in pids(later.rows) - pids(first.rows)


def test_a_look_can_be_taken_further(run: Run, source: str) -> None:
    one = Look()
    assert one.again()
    before = pids(one.rows)
    child = run()
    assert one.again()
    assert child.pid in pids(one.rows) - before
    assert len(one.rows) == len(pids(one.rows))


def test_a_process_that_forks_and_ends_all_the_time_is_seen_in_every_look(mark: str) -> None:
    code = """
        import os, time
        end = time.monotonic() + 10
        while time.monotonic() < end and not os.fork():
            time.sleep(0.005)
    """
    first = subprocess.Popen(python(code, mark), env={**os.environ, MARKER: mark})
    first.wait()
    seen = [bool(find_tree(0, mark)) for _ in range(30)]
    tree = Tree(0, mark)
    while not tree.is_gone():
        tree.kill()
    assert all(seen)


# --- signalling


async def test_a_signal_reaches_all_and_what_was_frozen_goes_on(start: Start, mark: str) -> None:
    code = """
import os, signal, time
heard = []
signal.signal(signal.SIGTERM, lambda *_: os.write(1, b"%d heard\\n" % os.getpid()))
for _ in range(3):
    if os.fork() == 0: break
os.write(1, b"%d ready\\n" % os.getpid())
while True: signal.pause()
"""
    child, heard = await start(python(code, mark))
    await heard.until(lambda: heard.data.count(b"ready") == 4)
    tree = child._tree()
    for times in (1, 2):
        await tree.signal(signal.SIGTERM)
        await heard.until(lambda times=times: heard.data.count(b"heard") == 4 * times)  # type: ignore[misc]
    assert len(tree.alive()) == 5  # with the guardian
    await tree.signal(signal.SIGKILL)
    assert await gone([seen.pid for seen in tree.alive()], LIMIT)
    assert tree.is_gone()


async def test_an_orphan_with_no_marker_is_found_below_the_guardian(
    start: Start, lifeline: Lifeline
) -> None:
    child, heard = await start(trees.forking(lifeline, deaf=True, cleared=True))
    (forker,) = json.loads(await heard.line())
    os.kill(child.pid, signal.SIGKILL)
    assert await child.exited(LIMIT)
    assert forker in tree_of(child)


def test_what_was_found_once_does_not_hide_later(lifeline: Lifeline, mark: str) -> None:
    words = trees.forking(lifeline, deaf=True, cleared=True)
    root = subprocess.Popen(
        words, env={**os.environ, MARKER: mark}, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with root:
        assert root.stdout
        (forker,) = json.loads(root.stdout.readline())
        tree = Tree(root.pid, mark)
        tree.look()
        # Without its parent, and with no marker, nothing but memory tells that it is ours.
        root.kill()
        root.wait()
        assert forker not in pids(find_tree(root.pid, mark))
        assert forker in pids(tree.look())
        while not tree.is_gone():
            tree.kill()
    assert not is_alive(forker)
    assert not lifeline.is_held()
