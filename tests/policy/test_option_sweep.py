"""Every option of every program that is taken for one that only reads: what it really does.

Each option that Bridle lets pass is run below strace, alone and with values, with the system's
program and with the one that the CLI's own shell has in its place. None may write a file, start
another program or open a connection.
"""

from __future__ import annotations

import os
import random
import re
import shlex
import shutil
import string
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bridle.policy.reading import PROGRAMS, is_reading
from bridle.policy.shell.programs import read_commands
from bridle.protocol.capabilities import TESTED_VERSIONS
from bridle.testing.install import install_cli
from tests.levels import tries

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed"),
]

#: What the CLI's shell has in place of a program, by the name in its binary.
OF_THE_CLI = {"find": "bfs", "grep": "ugrep", "egrep": "ugrep", "fgrep": "ugrep", "rg": "rg"}
#: The shell does these by itself.
BUILT_IN = ("cd", "echo", "printf", "pwd", "true", "false")
#: Beside those in PROGRAMS; `sed -n` and `date` take a few words alone, which are tried as well.
OTHERS = {"uniq": ("",), "sed": ("",), "date": ("",)}
#: Some words before the option, without which the program would only complain.
FIRST = {"jq": ".", "tr": "a b", "cut": "-f1", "join": "", "seq": "", "find": ".", "tree": "."}
#: Files that the programs look at.
FILES = {"f": "a b\n1 2\n", "g": "a c\n1 3\n", "d/h": "x\n", "1": "1\n", "f.gz": "\x1f\x8b"}
#: Those that wait for more to come.
WAITS = ("tail",)

TRACED = (
    "execve,execveat,open,openat,openat2,creat,unlink,unlinkat,rename,renameat,renameat2,mkdir,"
    "mkdirat,mknod,mknodat,link,linkat,symlink,symlinkat,chmod,fchmod,fchmodat,chown,fchown,lchown,"
    "fchownat,truncate,ftruncate,utime,utimes,utimensat,connect,chdir"
)
_CALL = re.compile(r"^(\d+) +(\w+)\((.*)$")
_WRITES = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC")
#: Files that take anything and keep nothing; and the name of a thread.
_SINKS = re.compile(r'"/dev/(?:null|tty|pts/\d+)"|"/proc/self/task/\d+/comm"')


def _longs(words: list[str]) -> set[str]:
    """The options that its help names."""
    said = subprocess.run(
        [*words, "--help"], capture_output=True, timeout=30, stdin=subprocess.DEVNULL, check=False
    )
    text = (said.stdout + said.stderr).decode(errors="replace")
    return set(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]+", text))


def _options(name: str, words: list[str]) -> Iterator[str]:
    letters = [f"-{char}" for char in string.ascii_letters + string.digits + ".?@+%^-"]
    table = PROGRAMS.get(name)
    longs = _longs(words) | (set(table.longs) if table else set())
    for option in (*letters, *sorted(longs)):
        equals = "=" if option.startswith("--") else ""
        yield from (option, f"{option} 1", f"{option}{equals}1", f"{option}{equals}./f")
    chosen = random.Random(name)
    for _ in range(tries(100, 400, 4_000)):
        # A letter with a value may take the next word, and those behind it mean something, too.
        bunch = "".join(chosen.sample(string.ascii_letters + string.digits, chosen.choice((2, 3))))
        yield from (f"-{bunch}", f"-{bunch} 1 ./new", f"-{bunch} -- -new")


def _commands(name: str, words: list[str]) -> list[str]:
    """What is allowed of all that can be made of its options."""
    first = FIRST.get(name, "")
    made = [
        f"{name} {option} {first} f g" if name != "find" else f"find . {option}"
        for option in _options(name, words)
    ]
    if name == "find":
        made += [f"find {option} ." for option in _options(name, words)]
    if name in ("uniq", "date", "sed"):
        made += [f"{name} {option}{end}" for option in _options(name, words)
                 for end in ("", " f", " - f", " 1p f")]  # fmt: skip
    if name == "sed":
        made += ["sed -n 1p f", "sed -n 1,2p f g", "sed -n 1,$p f"]
    quoted = dict.fromkeys(" ".join(map(shlex.quote, one.split())) for one in made)
    return [command for command in quoted if _is_allowed(command)]


def _is_allowed(command: str) -> bool:
    commands = read_commands(command)
    reads = bool(commands.programs) and all(map(is_reading, commands.programs))
    return reads and not (commands.unclear or commands.changes or commands.redirects)


def _trace(
    folder: Path, commands: list[str], program: str, argv0: str = ""
) -> dict[str, list[str]]:
    """What each command did beside reading."""
    script, trace = folder / "script", folder / "trace"
    lines = []
    for number, command in enumerate(commands):
        name, _, rest = command.partition(" ")
        where = folder / "work" / str(number)
        for file, text in FILES.items():
            (where / file).parent.mkdir(parents=True, exist_ok=True)
            (where / file).write_text(text)
        limit = "timeout -s KILL 0.2 " if name in WAITS else ""
        lines.append(f"cd {where}\n( exec {limit}{program} {rest} ) </dev/null >/dev/null 2>&1")
    script.write_text("\n".join([*lines, "exit 0"]))
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "LC_ALL": "C.UTF-8", "ARGV0": argv0}
    strace = ["strace", "-f", "--seccomp-bpf", "-qq", "-s", "256", "-e", "signal=none"]
    words = [*strace, "-e", f"trace={TRACED}", "-o", str(trace), "/bin/dash", str(script)]
    subprocess.run(words, env=env, stdin=subprocess.DEVNULL, timeout=400, check=True)
    return _read(trace.read_text(errors="replace"), commands, folder)


def _read(trace: str, commands: list[str], folder: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    now, shell, programs = "", "", set[str]()
    for line in trace.splitlines():
        call = _CALL.match(line)
        if not call or " = -1 " in line:
            continue
        pid, name, rest = call.groups()
        shell = shell or pid
        if name == "chdir" and pid == shell:
            now = commands[int(rest.partition('"')[2].partition('"')[0].rpartition("/")[2])]
            programs.clear()
        elif name == "chdir" or pid == shell:
            continue
        elif name == "execve":
            # The first is the program itself; some are scripts, or run below `timeout`.
            if programs and not _is_itself(rest, now):
                found.setdefault(now, []).append(line)
            programs.add(pid)
        elif name.startswith("open"):
            if _WRITES.search(rest) and not _SINKS.search(rest):
                found.setdefault(now, []).append(line)
        else:
            found.setdefault(now, []).append(line)
    return found


def _is_itself(call: str, command: str) -> bool:
    name = command.partition(" ")[0]
    program = call.partition('"')[2].partition('"')[0]
    is_grep = name in ("egrep", "fgrep") and program.endswith("/grep")
    return is_grep or program.endswith(f"/{name}")


SYSTEM = [name for name in (*PROGRAMS, *OTHERS) if name not in BUILT_IN]


@pytest.mark.parametrize("name", SYSTEM)
def test_no_option_of_the_systems_program_does_more_than_read(name: str, tmp_path: Path) -> None:
    if name in ("rg", "tree", "jq") and not shutil.which(name):
        pytest.skip(f"{name} is not installed")
    program = shutil.which(name)
    assert program, f"{name} is not installed"
    commands = _commands(name, [program])
    assert len(commands) > 2
    assert _trace(tmp_path, commands, program) == {}


@pytest.mark.parametrize("name", OF_THE_CLI)
def test_no_option_of_the_program_of_the_clis_shell_does_more_than_read(
    name: str, tmp_path: Path
) -> None:
    installed = install_cli(TESTED_VERSIONS[-1])
    binary = Path(installed.command[-1]).resolve()
    in_place = tmp_path / "bin" / OF_THE_CLI[name]
    in_place.parent.mkdir()
    in_place.symlink_to(binary)
    commands = _commands(name, [str(in_place)])
    assert len(commands) > 50
    assert _trace(tmp_path, commands, str(in_place), OF_THE_CLI[name]) == {}


def test_the_trace_sees_what_more_a_program_does(tmp_path: Path) -> None:
    """Otherwise the tests above could not fail."""
    commands = ["uniq - f", "diff -l f g", "find . -fprint z", "sort -o f g", "tree -Io x z"]
    found: dict[str, list[str]] = {}
    for number, command in enumerate(commands):
        folder = tmp_path / str(number)
        folder.mkdir()
        program = shutil.which(command.partition(" ")[0])
        assert program
        found |= _trace(folder, [command], program)
    assert set(found) == set(commands)
