"""A program that holds a journal open until its input ends: `python -m … FOLDER`."""

from __future__ import annotations

import asyncio
import sys

from bridle.journal.sqlite.store import open_journal

from .contents import append_batches


async def main(folder: str) -> None:
    async with open_journal(folder) as journal:
        await append_batches(journal, "s", 10)
        print("open", flush=True)  # noqa: T201
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
