"""What root's server can see and an ordinary user's can't: the same tests as such a user."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.as_user import run_as_user

FILES = ("test_peers.py", "test_security_peers.py", "test_unseen.py")
TESTS = [f"tests/server/{name}" for name in FILES]


@pytest.mark.slow
def test_peers_are_told_apart_by_an_ordinary_users_server() -> None:
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS]
    done = run_as_user(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout.decode()
