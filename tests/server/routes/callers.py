"""Those who call, past the door, and what they get."""

from __future__ import annotations

from typing import Any

import httpx

from bridle.server.access import Caller
from bridle.server.house import House
from tests.server.conftest import client_of

READER = Caller(role="reader", name="grafana")
#: What is no secret of anybody's.
SECRET = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz"


def reader_of(house: House) -> httpx.AsyncClient:
    return client_of(house, READER)


def agent_of(house: House, session: str) -> httpx.AsyncClient:
    """The agent of a session, with its own token."""
    return client_of(house, Caller(role="agent", name="an agent", session=session))


def told(answer: httpx.Response, status: int = 200) -> Any:
    """What was answered, if it was this."""
    assert answer.status_code == status, answer.text
    return answer.json()


def refused(answer: httpx.Response) -> tuple[int, str]:
    """How; every refusal says what is wrong and what to do."""
    problem = answer.json()
    assert problem["detail"]
    assert problem["remedy"]
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.status_code, str(problem["code"])
