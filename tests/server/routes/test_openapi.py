"""The description of the API: what it says of each route, and to whom it is given."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from bridle.server.app import PREFIX, api_routes
from bridle.server.examples import ANSWERS, BODIES
from bridle.server.house import House
from bridle.server.openapi import _parts, _routes, describe
from tests.server.conftest import PERSON, client_of

from .callers import READER, agent_of

#: It never ends.
ENDLESS = f"{PREFIX}/events"


def test_every_route_says_whom_it_takes_and_which_errors_can_come() -> None:
    told = describe(api_routes())
    assert told["openapi"] == "3.1.0"
    assert set(told["components"]["securitySchemes"]) == {"bearer", "cookie"}
    operations = [one for path in told["paths"].values() for one in path.values()]
    assert len({one["operationId"] for one in operations}) == len(operations) > 40
    for one in operations:
        assert "\n\nTakes " in one["description"]
        assert one["tags"][0] in {tag["name"] for tag in told["tags"]}
        assert ("401" in one["responses"]) == bool(one["security"])
        problem = one["responses"]["400"]["content"]["application/problem+json"]
        assert problem["schema"] == {"$ref": "#/components/schemas/ProblemDetails"}
    person = told["paths"][f"{PREFIX}/sessions"]["post"]
    assert person["description"].endswith("Takes a person's token.")
    assert "422" in person["responses"]
    assert told["paths"][f"{PREFIX}/health"]["get"]["description"].endswith("Takes no token.")
    stream = told["paths"][ENDLESS]["get"]["responses"]["200"]["content"]
    assert set(stream) == {"text/event-stream"}
    both = told["paths"][f"{PREFIX}/sessions/{{session}}/events"]["get"]["responses"]["200"]
    assert set(both["content"]) == {"application/json", "text/event-stream"}


@pytest.mark.slow
def test_every_body_and_every_main_answer_has_an_example_that_fits() -> None:
    for route in _routes(api_routes()):
        if route.body is not None:
            example = BODIES[route.name]
            assert msgspec.json.decode(msgspec.json.encode(example), type=route.body) == example
    examples = {route.name: route.answer for route in _routes(api_routes()) if route.answer}
    assert set(ANSWERS) <= set(examples)
    for name, answer in ANSWERS.items():
        kinds = _parts(examples[name])
        assert any(_fits(answer, kind) for kind in kinds), name


def _fits(answer: object, kind: Any) -> bool:
    try:
        msgspec.json.decode(msgspec.json.encode(answer), type=kind)
    except msgspec.ValidationError:
        return False
    return True


def test_the_shapes_have_short_names_that_lead_somewhere() -> None:
    text = msgspec.json.encode(describe(api_routes())).decode()
    shapes = set(msgspec.json.decode(text)["components"]["schemas"])
    assert not [name for name in shapes if "." in name]
    assert set(re.findall(r'"#/components/schemas/([^"]+)"', text)) <= shapes


async def test_it_is_given_to_people_and_readers(house: House) -> None:
    for caller, status in ((PERSON, 200), (READER, 200)):
        async with client_of(house, caller) as client:
            answer = await client.get("/openapi.json")
            assert answer.status_code == status
            assert answer.json()["info"]["title"] == "Bridle"
    async with agent_of(house, "x") as agent:
        assert (await agent.get("/openapi.json")).status_code == 403
