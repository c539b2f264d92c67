"""What goes out to agents that somebody else runs has no secrets in it."""

from __future__ import annotations

import json

from bridle.cli.loopback import loopback_options
from tests.server.served import served
from tests.supervisor.homes import DONE, INIT, LIMIT, ME, PROMPT, Home

from .doors import token_for

SECRET = "sk-ant-api03-" + "Ab1" * 20


async def test_what_a_child_says_is_redacted_for_those_outside(home: Home) -> None:
    options = loopback_options()
    cli = home.cli(PROMPT, INIT, {"say": f"the key is {SECRET}, and my name is Bob"}, DONE)
    settings = {"mounts": options["mounts"], "supervisor": {"loopback": options["loopback"]}}
    async with served(home.folder, **settings) as server:
        token, root = await token_for(server, home, "root")
        await server.supervisor.create(
            cwd=home.work, by=ME, name="below", parent=root, prompt="go", command=cli.command
        )
        await server.supervisor.wait("below", lambda record: record.turns == 1, LIMIT)
        params = {"name": "below", "wait_ms": 0, "from_seq": 0}
        body = {"jsonrpc": "2.0", "id": 1, "method": "claudecode.poll", "params": params}
        async with server.client(token) as client:
            answer = (await client.post("/rpc", json=body)).json()
        told = json.dumps(answer["result"]["events"])
        assert "my name is Bob" in told
        assert SECRET not in told
