"""A limited number of agents at a time: who waits, for how long, and what happens meanwhile."""

from __future__ import annotations

from .homes import DONE, INIT, LIMIT, ME, PROMPT, TURN, WORKS, Home, until


async def test_at_most_as_many_run_as_may_and_the_oldest_is_next(home: Home) -> None:
    async with home.open(size=2) as supervisor:
        names = [f"s{number}" for number in range(5)]
        for name in names:
            await home.start(supervisor, *TURN, name=name)
        order: list[str] = []
        while len(order) < 5:
            at_work = supervisor.list(lambda r: r.facts.has_process)
            assert len(at_work) <= 2
            name = names[len(order)]
            await supervisor.wait(name, lambda r: r.turns == 1, LIMIT)
            for later in names[len(order) + 2 :]:
                assert supervisor.get(later).state == "queued"
                assert supervisor.get(later).launches == 0
            await supervisor.stop(name)
            order.append(name)
        starts = [supervisor.get(name).launch for name in names]
        assert [launch.at for launch in starts if launch] == sorted(
            launch.at for launch in starts if launch
        )


async def test_one_that_ends_by_itself_makes_room(home: Home) -> None:
    async with home.open(size=1) as supervisor:
        for name in ("a", "b", "c"):
            await home.start(supervisor, *TURN, {"exit": 0}, name=name)
        for name in ("a", "b", "c"):
            assert (await until(supervisor, name, "stopped")).turns == 1


async def test_one_that_can_not_be_started_makes_room(home: Home) -> None:
    async with home.open(size=1) as supervisor:
        await supervisor.create(cwd=home.work, by=ME, name="bad", command=["no-such-program"])
        await home.start(supervisor, *TURN, name="good")
        await supervisor.wait("good", lambda r: r.turns == 1, LIMIT)
        assert supervisor.get("bad").state == "failed"


async def test_what_is_sent_while_it_waits_for_a_place_is_told_at_its_start(home: Home) -> None:
    cli = home.cli(*TURN * 3)
    async with home.open(size=1) as supervisor:
        await home.start(supervisor, *WORKS, name="first")
        await supervisor.create(cwd=home.work, by=ME, name="a", command=cli.command, prompt="one")
        for words in ("two", "three"):
            await supervisor.send("a", words)
        assert len(supervisor.get("a").waiting) == 3
        await supervisor.stop("first")
        await supervisor.wait("a", lambda r: r.turns == 3, LIMIT)
    told = [told["message"]["content"] for told in cli.told() if told["type"] == "user"]
    assert told == ["one", "two", "three"]


async def test_a_long_prompt_waits_as_well_as_a_short_one(home: Home) -> None:
    cli = home.cli(PROMPT, INIT, DONE, PROMPT, INIT, DONE)
    long = "x" * 400_000
    async with home.open(size=1) as supervisor:
        await home.start(supervisor, *WORKS, name="first")
        await supervisor.create(cwd=home.work, by=ME, name="a", command=cli.command, prompt=long)
        await supervisor.send("a", "short")
        await supervisor.stop("first")
        await supervisor.wait("a", lambda r: r.turns == 2, LIMIT)
    told = [told["message"]["content"] for told in cli.told() if told["type"] == "user"]
    assert told == [long, "short"]


async def test_those_who_wait_are_started_by_a_later_supervisor(home: Home) -> None:
    async with home.open(size=0) as supervisor:
        for name in ("a", "b"):
            await home.start(supervisor, *TURN, name=name)
        assert [record.state for record in supervisor.list()] == ["queued", "queued"]
    async with home.open(size=2) as supervisor:
        for name in ("a", "b"):
            await supervisor.wait(name, lambda r: r.turns == 1, LIMIT)


async def test_one_that_is_paused_while_it_waits_is_passed_over(home: Home) -> None:
    async with home.open(size=1) as supervisor:
        await home.start(supervisor, *WORKS, name="first")
        await home.start(supervisor, *TURN, name="second")
        await home.start(supervisor, *TURN, name="third")
        await supervisor.pause("second", by="me")
        await until(supervisor, "second", "paused")
        await supervisor.stop("first")
        await supervisor.wait("third", lambda r: r.turns == 1, LIMIT)
        assert supervisor.get("second").launches == 0
        await supervisor.stop("third")
        await supervisor.unpause("second")
        await supervisor.wait("second", lambda r: r.turns == 1, LIMIT)
