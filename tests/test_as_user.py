"""What root's server can see and an ordinary user's can't: the same tests as such a user."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.as_user import run_as_user

TESTS = (
    *(f"tests/server/{name}.py" for name in ("test_peers", "test_security_peers", "test_unseen")),
    *(
        "tests/home/test_private.py",
        "tests/supervisor/test_homes.py",
        "tests/server/test_tokens.py",
    ),
)

#: What only root can try, and nothing that the user may not write.
OPTIONS = ("-k", "not a_folder_of_another_user and not link_of_another", "-p", "no:cacheprovider")


@pytest.mark.slow
def test_an_ordinary_users_server_tells_callers_apart_and_keeps_its_files_to_itself() -> None:
    words = [sys.executable, "-m", "pytest", "-q", "-n", "2", *OPTIONS, *TESTS]
    done = run_as_user(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout.decode()
