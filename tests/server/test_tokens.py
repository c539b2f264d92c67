"""Tokens: found without a read, never stored, and gone when they are taken away."""

from __future__ import annotations

import base64
import os
import re
from pathlib import Path
from typing import Any, cast

import pytest

from bridle.errors import JournalUnwritable
from bridle.journal import Journal, open_journal
from bridle.journal.buckets import Bucket
from bridle.journal.journal import memory_journal
from bridle.server.access import Role
from bridle.server.login import MOST_TICKETS, TICKET_SECONDS, Tickets
from bridle.server.token_file import keep_first_token, login_name, renew_first_token
from bridle.server.tokens import BUCKET, LOGIN_SECONDS, Tokens


class Clock:
    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


@pytest.mark.parametrize(("role", "start"), [("person", "p"), ("agent", "a"), ("reader", "r")])
async def test_a_token_is_found_by_its_text_alone(role: Role, start: str) -> None:
    async with memory_journal() as journal:
        tokens = Tokens(journal, Clock())
        token, text = await tokens.create(role, "ada", "s1" if role == "agent" else "")
        assert re.fullmatch(rf"bridle_{start}_[A-Za-z0-9_-]{{43}}", text)
        assert len(base64.urlsafe_b64decode(text[9:] + "=")) == 32
        assert tokens.find(text, "token") == token
        for wrong in ("", text[:-1], text + "x", text.upper(), token.digest, token.id, "é\udc80"):
            assert tokens.find(wrong, "token") is None


async def test_a_cookie_is_no_token_and_a_token_is_no_cookie() -> None:
    async with memory_journal() as journal:
        tokens = Tokens(journal, Clock())
        _, text = await tokens.create("person", "ada")
        _, cookie = await tokens.log_in("ada")
        assert tokens.find(text, "login") is None
        assert tokens.find(cookie, "token") is None
        assert tokens.find(cookie, "login")


async def test_of_a_token_only_its_hash_and_its_end_are_stored(tmp_path: Path) -> None:
    async with open_journal(tmp_path / "home") as journal:
        tokens = Tokens(journal, Clock())
        _, text = await tokens.create("person", "ada")
        _, cookie = await tokens.log_in("ada")
        stored = b"".join(one.value for one in await journal.records.list(BUCKET))
    assert text[-4:].encode() in stored
    on_disk = b"".join(one.read_bytes() for one in (tmp_path / "home").iterdir() if one.is_file())
    for secret in (text, cookie):
        assert secret[9:].encode() not in stored + on_disk


async def test_tokens_are_known_again_after_a_restart_and_those_taken_away_are_not(
    tmp_path: Path,
) -> None:
    async with open_journal(tmp_path / "home") as journal:
        tokens = Tokens(journal, Clock())
        kept, text = await tokens.create("reader", "grafana")
        gone, lost = await tokens.create("reader", "old")
        await tokens.revoke(gone)
        assert tokens.find(lost, "token") is None
    async with open_journal(tmp_path / "home") as journal:
        tokens = Tokens(journal, Clock())
        await tokens.load()
        assert tokens.find(text, "token") == kept
        assert tokens.find(lost, "token") is None
        assert tokens.list() == [kept]


class Unwritable:
    """A journal of which nothing can be deleted, as long as it `refuses`."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.refuses = True
        self.is_lying = False

    def bucket(self, name: str, kind: type[Any]) -> Any:
        return Bucket(cast(Any, self), name, kind)

    async def delete(self, *which: Any) -> int:
        if self.refuses:
            if self.is_lying:
                await self._journal.records.delete(*which)
            raise JournalUnwritable("told to fail")
        return await self._journal.records.delete(*which)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal.records, name)


@pytest.mark.parametrize("how", ["again", "by the next", "it lied"])
async def test_one_whose_record_can_not_be_deleted_counts_no_more_and_can_be_taken_away_again(
    how: str,
) -> None:
    async with memory_journal() as journal:
        failing = Unwritable(journal)
        failing.is_lying = how == "it lied"
        tokens = Tokens(cast(Journal, failing), Clock())
        token, text = await tokens.create("reader", "old")
        for _ in range(2):
            found = tokens.revocable(token.id)
            assert found == token
            with pytest.raises(JournalUnwritable):
                await tokens.revoke(found)
            failing.is_lying = False
            assert tokens.find(text, "token") is None
            assert tokens.list() == []
        failing.refuses = False
        if how == "by the next":
            await tokens.create("reader", "new")
        else:
            await tokens.revoke(token)
        assert tokens.revocable(token.id) is None
        after = Tokens(journal, Clock())
        await after.load()
        assert after.find(text, "token") is None


async def test_a_login_is_over_after_its_time_and_is_forgotten(tmp_path: Path) -> None:
    clock = Clock()
    async with memory_journal() as journal:
        tokens = Tokens(journal, clock)
        _, cookie = await tokens.log_in("ada")
        clock.at += LOGIN_SECONDS - 1
        assert tokens.find(cookie, "login")
        clock.at += 1
        assert tokens.find(cookie, "login") is None
        assert tokens.list() == []
        await tokens.create("reader", "x")
        assert len(await journal.records.list(BUCKET)) == 1


# --- the file


async def test_the_first_token_is_made_once_and_is_its_owners_alone(tmp_path: Path) -> None:
    async with memory_journal() as journal:
        tokens = Tokens(journal, Clock())
        first = await keep_first_token(tmp_path, tokens)
        file = tmp_path / "token"
        assert file.stat().st_mode & 0o777 == 0o600
        assert tokens.find(file.read_text().strip(), "token") == first
        assert (first.role, first.name) == ("person", login_name())
        assert await keep_first_token(tmp_path, tokens) == first
        assert len(tokens.list()) == 1


@pytest.mark.parametrize("how", ["lost", "changed", "open", "a link", "empty"])
async def test_a_file_that_is_lost_or_open_to_others_is_made_anew_and_the_old_one_revoked(
    tmp_path: Path, how: str
) -> None:
    async with memory_journal() as journal:
        tokens = Tokens(journal, Clock())
        await keep_first_token(tmp_path, tokens)
        file = tmp_path / "token"
        old = file.read_text().strip()
        if how == "lost":
            file.unlink()
        elif how == "changed":
            file.write_text("bridle_p_of-somebody-else")
        elif how == "open":
            file.chmod(0o644)
        elif how == "empty":
            os.truncate(file, 0)
        else:
            file.rename(tmp_path / "elsewhere")
            file.symlink_to(tmp_path / "elsewhere")
        (tmp_path / f"token.{os.getpid()}.new").write_text("of one who was killed")
        second = await keep_first_token(tmp_path, tokens)
        new = file.read_text().strip()
        assert new != old
        assert tokens.find(old, "token") is None
        assert tokens.find(new, "token") == second
        assert file.stat(follow_symlinks=False).st_mode & 0o777 == 0o600
        assert tokens.list() == [second]
        assert not (tmp_path / f"token.{os.getpid()}.new").exists()


async def test_a_token_that_somebody_has_made_does_not_do_for_the_file(tmp_path: Path) -> None:
    async with memory_journal() as journal:
        tokens = Tokens(journal, Clock())
        _, text = await tokens.create("reader", "x")
        (tmp_path / "token").write_text(text)
        (tmp_path / "token").chmod(0o600)
        await keep_first_token(tmp_path, tokens)
        assert (tmp_path / "token").read_text().strip() != text


async def test_one_that_could_not_be_deleted_when_it_was_replaced_is_at_the_next_start(
    tmp_path: Path,
) -> None:
    async with memory_journal() as journal:
        failing = Unwritable(journal)
        tokens = Tokens(cast(Journal, failing), Clock())
        await keep_first_token(tmp_path, tokens)
        old = (tmp_path / "token").read_text().strip()
        with pytest.raises(JournalUnwritable):
            await renew_first_token(tmp_path, tokens)
        tokens = Tokens(journal, Clock())
        await tokens.load()
        kept = await keep_first_token(tmp_path, tokens)
        assert tokens.list() == [kept]
        assert tokens.find(old, "token") is None


async def test_the_first_token_can_be_renewed(tmp_path: Path) -> None:
    async with memory_journal() as journal:
        tokens = Tokens(journal, Clock())
        await keep_first_token(tmp_path, tokens)
        old = (tmp_path / "token").read_text().strip()
        new = await renew_first_token(tmp_path, tokens)
        assert tokens.list() == [new]
        assert tokens.find(old, "token") is None


# --- tickets


def test_a_ticket_works_once() -> None:
    tickets = Tickets(Clock())
    ticket = tickets.make("ada")
    assert tickets.take("another") is None
    assert tickets.take(ticket) == "ada"
    assert tickets.take(ticket) is None


def test_a_ticket_is_over_after_ten_minutes() -> None:
    clock = Clock()
    tickets = Tickets(clock)
    ticket = tickets.make("ada")
    clock.at += TICKET_SECONDS
    assert tickets.take(ticket) is None


def test_there_are_never_many_tickets() -> None:
    tickets = Tickets(Clock())
    made = [tickets.make("ada") for _ in range(MOST_TICKETS + 1)]
    assert tickets.take(made[0]) is None
    assert tickets.take(made[1]) == "ada"
