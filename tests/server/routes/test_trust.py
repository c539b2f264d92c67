"""Folders that are trusted by the API: with just what was shown, from the next start on."""

from __future__ import annotations

import json
import subprocess

import httpx

from bridle.server.house import House
from tests.supervisor.homes import LIMIT, TURN, Home

from .callers import SECRET, reader_of, refused, told


def brings(home: Home, words: str = "true") -> None:
    settings = home.work / ".claude" / "settings.json"
    settings.parent.mkdir(exist_ok=True)
    hook = {"hooks": [{"type": "command", "command": words}]}
    settings.write_text(json.dumps({"hooks": {"Stop": [hook]}}))


def git(home: Home, *words: str) -> None:
    subprocess.run(["git", *words], cwd=home.work, check=True)


async def test_what_a_folder_brings_is_shown_trusted_and_withdrawn(
    home: Home, client: httpx.AsyncClient
) -> None:
    brings(home)
    folder = {"folder": str(home.work)}
    survey = told(await client.get("/trust/survey", params=folder))
    assert [one["what"] for one in survey["brings"]] == ["hooks"]
    assert survey["is_trusted"] is False
    body = {**folder, "digest": survey["digest"]}
    trusted = told(await client.put("/trust", json=body))
    assert (trusted["folder"], trusted["by"]["name"]) == (str(home.work), "me")
    assert told(await client.get("/trust"))[0]["folder"] == str(home.work)
    assert told(await client.get("/trust/survey", params=folder))["is_trusted"] is True
    assert (await client.delete("/trust", params=folder)).status_code == 204
    assert told(await client.get("/trust")) == []
    assert told(await client.get("/trust/survey", params=folder))["is_trusted"] is False


async def test_what_has_changed_since_it_was_shown_is_not_trusted(
    home: Home, client: httpx.AsyncClient
) -> None:
    brings(home)
    folder = {"folder": str(home.work)}
    survey = told(await client.get("/trust/survey", params=folder))
    brings(home, "rm -rf /")
    answer = await client.put("/trust", json={**folder, "digest": survey["digest"]})
    assert refused(answer) == (409, "folder_changed")
    assert answer.json()["about"]["digest"] != survey["digest"]
    assert told(await client.get("/trust")) == []


async def test_a_trusted_folder_brings_its_settings_to_the_next_start(
    house: House, home: Home, client: httpx.AsyncClient
) -> None:
    brings(home)
    folder = {"folder": str(home.work)}
    survey = told(await client.get("/trust/survey", params=folder))

    async def sources(name: str) -> bool:
        """Whether the CLI was told to use the user's settings alone."""
        cli = home.cli(*TURN)
        await home.start(house.supervisor, command=cli.command, name=name)
        await house.supervisor.wait(name, lambda record: record.turns == 1, LIMIT)
        [words] = [entry["argv"] for entry in cli.report() if "argv" in entry]
        return any(word.startswith("--setting-sources") for word in words)

    assert await sources("before") is True
    told(await client.put("/trust", json={**folder, "digest": survey["digest"]}))
    assert await sources("trusted") is False
    brings(home, "something else")
    assert await sources("changed") is True
    brings(home)
    assert (await client.delete("/trust", params=folder)).status_code == 204
    assert await sources("withdrawn") is True


async def test_folders_that_can_not_be_are_refused(home: Home, client: httpx.AsyncClient) -> None:
    odd = ("relative", "/nowhere/at/all", "~nobody/x", "", "/" + "x" * 4_000, "/\0", "/\ud800x")
    for folder in odd:
        text = folder.encode("utf-8", "surrogatepass")
        answer = await client.get("/trust/survey", params={"folder": text})
        assert refused(answer) == (400, "invalid_folder"), folder
        answer = await client.delete("/trust", params={"folder": text})
        assert refused(answer)[0] in (400, 404)
    for given in odd[:-1]:
        answer = await client.put("/trust", json={"folder": given, "digest": "x"})
        assert refused(answer) == (400, "invalid_folder")
    answer = await client.get("/trust/survey", params={"folder": "/" + "x" * 10_000})
    assert refused(answer)[0] == 400
    assert refused(await client.get("/trust/survey"))[0] == 400


async def test_readers_see_it_without_secrets(
    house: House, home: Home, client: httpx.AsyncClient
) -> None:
    brings(home, SECRET)
    folder = {"folder": str(home.work)}
    survey = told(await client.get("/trust/survey", params=folder))
    told(await client.put("/trust", json={**folder, "digest": survey["digest"]}))
    async with reader_of(house) as reader:
        answer = await reader.get("/trust")
        assert answer.status_code == 200
        assert SECRET not in answer.text
        assert "[redacted:anthropic-key]" in answer.text


async def test_a_reader_has_no_folder_looked_at(house: House, home: Home) -> None:
    async with reader_of(house) as reader:
        for folder in (str(home.work), "/nowhere/at/all"):
            answer = await reader.get("/trust/survey", params={"folder": folder})
            assert refused(answer) == (403, "forbidden")


async def test_a_policy_is_tried_as_it_holds_in_a_trusted_repository(
    home: Home, client: httpx.AsyncClient
) -> None:
    git(home, "init", "-q")
    git(home, "config", "diff.external", "./x")
    folder = {"folder": str(home.work)}
    call = {"tool": "Bash", "input": {"command": "git diff"}}

    async def verdict() -> str:
        body = {**folder, "policy": "edits", "calls": [call]}
        [result] = told(await client.post("/policies/test", json=body))["results"]
        return str(result["behavior"])

    assert await verdict() == "ask"
    survey = told(await client.get("/trust/survey", params=folder))
    assert [one["what"] for one in survey["brings"]] == ["diff.external"]
    told(await client.put("/trust", json={**folder, "digest": survey["digest"]}))
    assert await verdict() == "allow"
