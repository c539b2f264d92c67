"""Process trees that are hard to end. Each says on stdout, in one line, which pids it has."""

from __future__ import annotations

from .children import Lifeline, python

# `leave` starts a process that sleeps and hears neither SIGINT nor SIGTERM (exec keeps that).
# The pipe is closed by every exec: when it is at its end, all are what they are to be.
_START = """
import json, os, signal, sys, time

told, tell = os.pipe()
mark = sys.argv[1]
os.set_inheritable(os.open(sys.argv[2], os.O_WRONLY), True)

def deaf():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)

def leave(own_session=False, orphan=False, cleared=False):
    pid = os.fork()
    if pid:
        if orphan:
            os.waitpid(pid, 0)
        return
    deaf()
    if own_session:
        os.setsid()
    if orphan and os.fork():
        os._exit(0)
    quiet()
    os.write(tell, b"%d " % os.getpid())
    os.execve("/bin/sleep", [mark, "600"], {} if cleared else dict(os.environ))

def quiet():
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)

def run(code, env, is_deaf=True):
    if os.fork() == 0:
        if is_deaf:
            deaf()
        quiet()
        os.write(tell, b"%d " % os.getpid())
        os.execve(sys.executable, [sys.executable, "-I", "-S", "-c", code, mark], env)

def say():
    os.close(tell)
    pids = b""
    while piece := os.read(told, 4096):
        pids += piece
    os.write(1, json.dumps([int(pid) for pid in pids.split()]).encode() + b"\\n")

# One child every 3 ms, each in its own session; 200 at most, so that a failure is no catastrophe.
# Where it hears an interrupt it ends at once: Python's own handler would let it fork once more.
FORKS = '''
import os, signal, time
if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
for _ in range(200):
    if os.fork() == 0:
        os.setsid()
        time.sleep(600)
    time.sleep(0.003)
time.sleep(600)
'''

# A process that is never the same for long: it forks and ends. For 5 s, then the last one stays.
HOPS = '''
import os, time
end = time.monotonic() + 5
while time.monotonic() < end:
    time.sleep(0.02)
    if os.fork():
        os._exit(0)
    os.setsid()
time.sleep(600)
'''
"""

_STAY = "\nsay()\nwhile True: time.sleep(600)\n"
_END = "\nsay()\nos.read(0, 1)\n"


def stubborn(line: Lifeline) -> list[str]:
    """A root and five kinds of children, none of which hears anything but SIGKILL."""
    body = """
deaf()
leave()
leave(own_session=True)
leave(own_session=True, orphan=True)
leave(own_session=True, cleared=True)
run(FORKS, dict(os.environ))
"""
    return python(_START + body + _STAY, *line.words)


def abandoning(line: Lifeline) -> list[str]:
    """A root that ends when it is asked to, and leaves orphans in sessions of their own."""
    body = "leave()\nleave(own_session=True)\nleave(own_session=True, orphan=True)\n"
    return python(_START + body + _END, *line.words)


def forking(line: Lifeline, *, deaf: bool, cleared: bool) -> list[str]:
    """A root whose child forks all the time; the two hear SIGTERM, or not."""
    env = "{}" if cleared else "dict(os.environ)"
    body = f"\n{'deaf()' if deaf else ''}\nrun(FORKS, {env}, {deaf})\n"
    return python(_START + body + _STAY, *line.words)


def hopping(line: Lifeline) -> list[str]:
    """A root with a descendant that forks and ends, again and again."""
    return python(_START + "\nrun(HOPS, dict(os.environ))\n" + _END, *line.words)


def racing(line: Lifeline) -> list[str]:
    """A root that ends while the child that it leaves becomes another program."""
    body = """
os.write(1, b"[]\\n")
if os.fork() == 0:
    quiet()
    os.execve("/bin/sleep", [mark, "600"], dict(os.environ))
os._exit(0)
"""
    return python(_START + body, *line.words)
