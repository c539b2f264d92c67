"""Small files that are for their owner alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridle.home.files import read_private, write_private


@pytest.mark.parametrize("mode", [0o640, 0o620, 0o604, 0o602])
def test_what_others_can_read_or_write_is_as_good_as_lost(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "token"
    write_private(file, "secret")
    assert read_private(file) == "secret"
    file.chmod(mode)
    assert read_private(file) is None
