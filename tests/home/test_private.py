"""A folder that others could change is not used, and nothing in it is touched."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bridle.errors import HomeNotPrivate
from bridle.home.private import made_private, private_folder

ANOTHER = 12345


def mode(folder: Path) -> int:
    return folder.stat().st_mode & 0o777


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "above" / "home"
    home.mkdir(parents=True, mode=0o700)
    return home


def test_what_others_could_read_they_can_read_no_more(home: Path) -> None:
    home.chmod(0o755)
    assert private_folder(home) == home
    assert mode(home) == 0o700


def test_one_that_is_not_there_is_made_for_its_owner_alone(home: Path) -> None:
    new = home / "a" / "b"
    assert private_folder(new) == new
    assert not new.exists()
    assert made_private(new) == new
    assert mode(new) == 0o700


def test_a_link_of_ones_own_is_followed(home: Path) -> None:
    link = home.parent / "link"
    link.symlink_to(home)
    assert private_folder(link) == link


@pytest.mark.parametrize("bits", [0o770, 0o702])
def test_one_that_others_can_write_to_is_refused(home: Path, bits: int) -> None:
    home.chmod(bits)
    with pytest.raises(HomeNotPrivate, match="others can write to it"):
        private_folder(home)
    assert mode(home) == bits


@pytest.mark.parametrize("is_there", [True, False])
def test_one_that_anybody_could_replace_is_refused(home: Path, is_there: bool) -> None:
    if not is_there:
        home.rmdir()
    home.parent.chmod(0o777)
    with pytest.raises(HomeNotPrivate, match=r"everybody can write to .*above, in which"):
        made_private(home)
    assert home.exists() == is_there
    # As in /tmp: there only its owner can rename what is in it.
    home.parent.chmod(0o1777)
    assert made_private(home) == home


def test_one_of_another_user_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    us = os.geteuid()
    monkeypatch.setattr("os.geteuid", lambda: us + 1)
    with pytest.raises(HomeNotPrivate, match=f"it belongs to another user .{us}."):
        private_folder(home)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give something to another user")
def test_one_in_a_folder_of_another_user_is_refused(home: Path) -> None:
    os.chown(home.parent, ANOTHER, -1)
    for folder in (home, home.parent / "new"):
        with pytest.raises(HomeNotPrivate, match="in which it lies, belongs to another user"):
            made_private(folder)
    assert not (home.parent / "new").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give something to another user")
def test_a_link_of_another_user_is_refused(home: Path) -> None:
    link = home.parent / "link"
    link.symlink_to(home)
    os.chown(link, ANOTHER, -1, follow_symlinks=False)
    with pytest.raises(HomeNotPrivate, match="it is a link of another user"):
        private_folder(link)
