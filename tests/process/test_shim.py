"""The shim: what it feeds, what it keeps, what it outlives, and that it starts nothing twice."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from bridle.process import shim
from bridle.process.spool import Spool, current_boot
from bridle.process.transport import Exit
from bridle.process.wake import Wakes

from ..journal.sqlite.disks import tmpfs
from .children import LIMIT, gone, is_alive, program, python
from .spools import RunShim, Shimmed

CAT = ["/bin/cat"]
#: Says when it reads and what it has read, when its input is at its end.
DIGEST = python(
    """
    import hashlib, os, signal, sys
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    os.write(1, b"ready\\n")
    signal.sigwait([signal.SIGUSR1])
    data = sys.stdin.buffer.read()
    print(len(data), hashlib.sha256(data).hexdigest())
    """
)
#: Leaves a process that has no parent, no session of ours and no environment, and ends.
ABANDONS = """
    import os, sys
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.write(1, b"%d\\n" % os.getpid())
        null = os.open(os.devnull, os.O_RDWR)
        for fd in range(3):
            os.dup2(null, fd)
        os.execve("/bin/sleep", [sys.argv[1], "600"], {})
    os.wait()
"""


# --- feeding


async def test_what_is_appended_comes_back_as_the_echo_of_the_cli(run_shim: RunShim) -> None:
    shimmed = await run_shim(CAT)
    await shimmed.until(lambda: shimmed.spool.shim() is not None)
    for number in range(3):
        shimmed.say(b"%d\n" % number)
        await shimmed.until(lambda end=b"%d\n" % number: shimmed.heard().endswith(end))  # type: ignore[misc]
    assert shimmed.heard() == b"0\n1\n2\n"


async def test_what_was_there_before_it_began_is_fed(run_shim: RunShim, tmp_path: Path) -> None:
    spool = Spool(tmp_path / "early")
    spool.make()
    spool.append(b"early\n")
    assert not spool.ring()
    shimmed = await run_shim(CAT, folder=spool.folder)
    assert await shimmed.line() == "early"


async def test_a_half_line_that_is_completed_later_reaches_the_cli_whole(run_shim: RunShim) -> None:
    code = "import sys\nfor line in sys.stdin: print(len(line), flush=True)"
    shimmed = await run_shim(python(code))
    shimmed.spool.append(b"x" * 200_000)
    await shimmed.until(shimmed.spool.ring)
    shimmed.say(b"y" * 300_000 + b"\n")
    assert await shimmed.line() == "500001"


async def test_the_input_ends_after_all_that_was_appended(run_shim: RunShim) -> None:
    shimmed = await run_shim(DIGEST)
    await shimmed.line()
    lines = [b"%06d" % number * 1000 + b"\n" for number in range(900)]
    for line in lines:
        shimmed.say(line)
    assert shimmed.spool.ring(end=True)
    os.kill(shimmed.cli(), signal.SIGUSR1)
    data = b"".join(lines)
    assert len(data) > 5_000_000
    assert await shimmed.end() == Exit(code=0)
    told = shimmed.heard().split(b"\n")[1].decode()
    assert told == f"{len(data)} {hashlib.sha256(data).hexdigest()}"


async def test_a_cli_that_closes_its_input_goes_on_and_its_status_is_kept(
    run_shim: RunShim,
) -> None:
    code = """
        import os, signal
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
        os.close(0)
        os.write(1, b"ready\\n")
        signal.sigwait([signal.SIGUSR1])
        os._exit(5)
    """
    shimmed = await run_shim(python(code))
    await shimmed.line()
    for _ in range(3):
        shimmed.say(b"x" * 1_000_000)
    os.kill(shimmed.cli(), signal.SIGUSR1)
    assert await shimmed.end() == Exit(code=5)
    assert shimmed.left() == 0


@pytest.mark.slow
async def test_it_never_wakes_while_there_is_nothing_to_do(run_shim: RunShim) -> None:
    # Its input is full, its CLI does not read, and it has an orphan to wait for.
    shimmed = await run_shim(DIGEST)
    await shimmed.line()
    shimmed.say(b"x" * 1_000_000)
    pid = shimmed.process.pid

    def switches() -> int:
        return sum(psutil.Process(pid).num_ctx_switches())

    # It has come to rest when it sleeps twice in a row at the same count.
    end = time.monotonic() + LIMIT
    before = -1
    while before != (before := switches()) or psutil.Process(pid).status() != "sleeping":
        assert time.monotonic() < end
        time.sleep(0.05)  # noqa: ASYNC251 - it is this time in which nothing may happen
    time.sleep(0.5)  # noqa: ASYNC251
    assert switches() == before


# --- how the CLI ended


@pytest.mark.parametrize(
    ("end", "status"),
    [
        ("os._exit(0)", Exit(code=0)),
        ("os._exit(255)", Exit(code=255)),
        ("os.kill(os.getpid(), 15)", Exit(signal=15)),
        ("os.kill(os.getpid(), 9)", Exit(signal=9)),
    ],
)
async def test_the_exit_status_is_kept_when_all_are_gone(
    run_shim: RunShim, end: str, status: Exit
) -> None:
    shimmed = await run_shim(python(f"import os\nos.write(1, b'last words')\n{end}"))
    assert shimmed.left() == 0
    assert shimmed.spool.exit() == status
    assert shimmed.heard() == b"last words"
    assert not shimmed.spool.is_held()
    assert not shimmed.spool.ring()


async def test_a_program_that_can_not_be_run_tells_why(run_shim: RunShim, tmp_path: Path) -> None:
    bad = program(tmp_path / "bad", "#!/no/such/interpreter\n")
    shimmed = await run_shim([bad])
    assert await shimmed.end() == Exit(code=127)
    said = shimmed.spool.read("stderr", 0, 1000).decode()
    assert said == f"can't start {bad}: No such file or directory\n"


async def test_a_full_disk_does_not_lose_the_exit_status(run_shim: RunShim, tmp_path: Path) -> None:
    with tmpfs(tmp_path / "disk") as disk:
        shimmed = await run_shim(CAT, folder=disk.folder / "spool")
        await shimmed.until(lambda: shimmed.spool.cli() is not None)
        disk.fill()
        os.kill(shimmed.cli(), signal.SIGKILL)
        assert await shimmed.end() == Exit(signal=9)
        assert shimmed.left() == 0


@pytest.mark.slow
async def test_what_can_not_be_written_is_written_later(run_shim: RunShim, tmp_path: Path) -> None:
    with tmpfs(tmp_path / "disk") as disk:
        shimmed = await run_shim(CAT, folder=disk.folder / "spool")
        await shimmed.until(lambda: shimmed.spool.cli() is not None)
        # So that not even the place that was kept for it is there.
        os.unlink(shimmed.spool.path("exit.new"))  # noqa: PTH108
        disk.fill()
        os.kill(shimmed.cli(), signal.SIGTERM)
        # It has tried when the file is there again, and empty.
        await shimmed.until((shimmed.spool.folder / "exit.new").exists)
        assert shimmed.spool.exit() is None
        assert shimmed.spool.is_held()
        disk.free()
        assert await shimmed.end() == Exit(signal=15)
        assert shimmed.left() == 0


# --- what it and the CLI are


async def test_it_says_which_processes_they_are(run_shim: RunShim) -> None:
    shimmed = await run_shim(CAT)
    await shimmed.until(lambda: shimmed.spool.cli() is not None)
    who, cli = shimmed.spool.shim(), shimmed.spool.cli()
    assert who
    assert cli
    assert (who.pid, who.boot) == (shimmed.process.pid, current_boot())
    assert psutil.Process(cli.pid).ppid() == who.pid
    assert os.getsid(cli.pid) == who.pid
    for process in (who, cli):
        seen = process.seen()
        assert seen
        assert seen.born == process.born > 0


def ignored() -> int:
    """What we ignore: Python itself two, and whoever has started the tests perhaps some more."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("SigIgn:\t")[2].split()[0], 16)


async def test_it_hears_no_signal_and_the_cli_hears_all(run_shim: RunShim) -> None:
    held = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD, signal.SIGUSR2])
    try:
        code = """
            import json
            lines = open("/proc/self/status").read().split("\\n")
            found = dict(line.split(":\\t") for line in lines if line)
            print(json.dumps([int(found[name], 16) for name in ("SigBlk", "SigIgn")]), flush=True)
            import sys; sys.stdin.read()
        """
        shimmed = await run_shim(python(code))
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)
    assert json.loads(await shimmed.line()) == [0, ignored()]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        shimmed.process.send_signal(number)
    assert shimmed.spool.ring(end=True)
    assert await shimmed.end() == Exit(code=0)
    assert shimmed.left() == 0


async def test_the_cli_has_no_files_of_the_shim(run_shim: RunShim) -> None:
    code = "import os; print(sorted(os.listdir('/proc/self/fd')), flush=True); os.read(0, 1)"
    shimmed = await run_shim(python(code))
    # The fourth is the listing itself.
    assert await shimmed.line() == "['0', '1', '2', '3']"


async def test_when_it_is_killed_the_cli_is_told_to_end(run_shim: RunShim) -> None:
    code = """
        import os, signal
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        os.write(1, b"ready\\n")
        signal.sigwait([signal.SIGTERM])
        os.write(1, b"told\\n")
    """
    shimmed = await run_shim(python(code))
    await shimmed.line()
    cli = shimmed.cli()
    shimmed.process.kill()
    await shimmed.until(lambda: shimmed.heard() == b"ready\ntold\n")
    assert await gone([cli], LIMIT)
    assert shimmed.spool.exit() is None
    assert not shimmed.spool.is_held()


async def test_orphans_become_its_children_and_it_stays_until_they_are_gone(
    run_shim: RunShim, mark: str
) -> None:
    shimmed = await run_shim(python(ABANDONS, mark))
    orphan = int(await shimmed.line())
    assert await shimmed.end() == Exit(code=0)
    assert psutil.Process(orphan).ppid() == shimmed.process.pid
    assert shimmed.process.poll() is None
    assert shimmed.spool.is_held()
    os.kill(orphan, signal.SIGKILL)
    assert shimmed.left() == 0
    assert not is_alive(orphan)


async def test_whoever_ends_below_it_is_reaped(run_shim: RunShim, mark: str) -> None:
    code = "for _ in range(20): subprocess.run(['setsid', '-f', 'true'], check=True)"
    tail = "print(os.getppid(), flush=True); sys.stdin.read()"
    shimmed = await run_shim(python(f"import os, subprocess, sys\n{code}\n{tail}"))
    assert await shimmed.line() == str(shimmed.process.pid)
    children = psutil.Process(shimmed.process.pid).children
    end = time.monotonic() + LIMIT
    while len(children()) > 1:  # nobody tells us of another's children
        assert time.monotonic() < end
        time.sleep(0.01)  # noqa: ASYNC251


# --- starting nothing


def run_to_the_end(spool: Spool) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-I", "-S", shim.__file__, str(spool.folder), "--"]
    return subprocess.Popen([*words, "/bin/sh", "-c", f"echo > {spool.folder}/started"])


def test_one_that_was_abandoned_starts_nothing(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    spool.make()
    assert spool.abandon()
    assert run_to_the_end(spool).wait(LIMIT) == 0
    assert spool.shim() is None
    assert not (spool.folder / "started").exists()


def test_one_that_is_abandoned_while_it_starts_starts_nothing(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    spool.make()
    lock = os.open(spool.path("lock"), os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    process = run_to_the_end(spool)
    wanted = f" {os.fstat(lock).st_ino} "
    end = time.monotonic() + LIMIT
    while f":{wanted.strip()} " not in _waiting_locks():  # it has come to the lock
        assert time.monotonic() < end
        time.sleep(0.005)
    (spool.folder / "abandoned").touch()
    os.close(lock)
    assert process.wait(LIMIT) == 0
    assert not (spool.folder / "started").exists()


def _waiting_locks() -> str:
    lines = Path("/proc/locks").read_text().splitlines()
    return "\n".join(f"{line} " for line in lines if "->" in line)


@pytest.mark.parametrize("round_", range(10))
def test_either_it_starts_or_it_is_abandoned(tmp_path: Path, round_: int) -> None:
    spool = Spool(tmp_path / "spool")
    spool.make()
    process = run_to_the_end(spool)
    time.sleep(round_ * 0.003)
    was_abandoned = spool.abandon() and spool.shim() is None
    process.wait(LIMIT)
    assert (spool.folder / "started").exists() is not was_abandoned


def test_without_its_folder_it_starts_nothing(tmp_path: Path) -> None:
    words = [sys.executable, "-I", "-S", shim.__file__, str(tmp_path / "none"), "--", "/bin/true"]
    done = subprocess.run(words, capture_output=True, timeout=LIMIT, check=False)
    assert done.returncode == 1
    assert b"No such file" in done.stderr


def test_it_imports_what_is_small() -> None:
    code = (
        f"import sys; sys.argv = ['x']; exec(open({shim.__file__!r}).read(), {{'__name__': 'x'}})"
    )
    code += "; print(*sys.modules)"
    words = [sys.executable, "-I", "-S", "-c", code]
    loaded = set(subprocess.run(words, capture_output=True, text=True, check=True).stdout.split())
    large = {"typing", "enum", "json", "subprocess", "re", "collections", "contextlib", "signal"}
    assert loaded & large == set()


async def test_it_is_small(run_shim: RunShim, wakes: Wakes) -> None:
    shimmed: list[Shimmed] = [await run_shim(CAT) for _ in range(3)]
    for one in shimmed:
        await one.until(lambda one=one: one.spool.cli() is not None)  # type: ignore[misc]
    memory = psutil.Process(shimmed[0].process.pid).memory_full_info()
    assert memory.rss < 14 << 20
    assert memory.uss < 6 << 20
