"""Run a command as an ordinary user: `python -m tests.as_user make test`, called by root.

For what root is allowed and others are not: to look into processes and files of others. The user
sees the folders of Python, of the tests and of what they need where they are, also below a home
that is closed to them: in a view of the file system that only this command has.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bridle.testing.install import cache_folder

#: `nobody`, or whoever has the number that it has on every system.
USER = 65534
ROOT = Path(__file__).parent.parent

# What is closed is covered by an empty folder, into which what is needed is mounted.
_SCRIPT = """
set -eu
user=$1 home=$2 closed=$3; shift 3
kept=$(mktemp -d /tmp/bridle-as-user-XXXXXX)
number=0
for path in $NEEDED; do
  mkdir "$kept/$number"; mount --bind "$path" "$kept/$number"; number=$((number + 1))
done
for path in $closed; do mount -t tmpfs -o mode=755 none "$path"; done
number=0
for path in $NEEDED; do
  mkdir -p "$path"; mount --bind "$kept/$number" "$path"; number=$((number + 1))
done
unset NEEDED
cd "$HERE"; unset HERE
HOME=$home exec setpriv --reuid="$user" --regid="$user" --clear-groups -- "$@"
"""


def run_as_user(words: Sequence[str], **options: object) -> subprocess.CompletedProcess[bytes]:
    """Run this as an ordinary user, with an empty home; as ourselves, if we are one."""
    if os.geteuid() != 0:
        return subprocess.run(words, check=False, **options)  # type: ignore[call-overload,no-any-return]
    needed = [ROOT, Path(sys.base_prefix), Path(sys.prefix), cache_folder()]
    needed = [path.resolve() for path in needed if path.exists()]
    closed = {above for path in needed if (above := _closed_above(path))}
    inside = [path for path in needed if _closed_above(path)]
    with tempfile.TemporaryDirectory(prefix="bridle-user-") as folder:
        home = Path(folder) / "home"
        home.mkdir()
        for path in (folder, home):
            os.chown(path, USER, USER)
        env = {
            **os.environ,
            "NEEDED": "\n".join(map(str, inside)),
            "HERE": str(ROOT),
            "BRIDLE_CACHE": str(cache_folder()),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        start = ["unshare", "--mount", "sh", "-c", _SCRIPT, "as-user", str(USER), str(home)]
        start += [" ".join(map(str, closed))]
        return subprocess.run([*start, *words], env=env, check=False, **options)  # type: ignore[call-overload,no-any-return]


def _closed_above(path: Path) -> Path | None:
    """The outermost folder above that others can't enter."""
    closed = [above for above in path.parents if not above.stat().st_mode & 0o001]
    return closed[-1] if closed else None


if __name__ == "__main__":
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        sys.exit("only root can become another user, with `setpriv` (apt-get install util-linux)")
    sys.exit(run_as_user(sys.argv[1:]).returncode)
