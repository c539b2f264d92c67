"""The README's Python runs as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from bridle.testing import InstalledCli

README = Path(__file__).resolve().parents[2] / "README.md"


def test_the_readmes_python_does_what_it_says(real_cli: InstalledCli, tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert f'install_cli("{real_cli.version}")' in code
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == "Done. hi\n\n", done.stderr
