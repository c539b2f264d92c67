"""What is answered when a request ends in an error, whichever it was.

Owns the answer, and the words for what Litestar itself refuses. Nothing is told of an error that
nobody expected: it is in the log.
"""

from __future__ import annotations

import logging
import re
from http import HTTPStatus
from typing import Any

from litestar import Request, Response
from litestar.exceptions import HTTPException, ValidationException

from ..errors import BridleError
from .problems import MEDIA_TYPE, Problem, sentence
from .troubles import trouble_of

_UNKNOWN_FIELD = re.compile(r"unknown field `([^`]*)`")

_log = logging.getLogger(__name__)


def answer(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """The answer to a request that ended in any error. A CLI's own words may be in it."""
    problem = logged_problem(error)
    house = request.scope.get("state", {}).get("house")
    return Response(
        house.redactor.bytes(problem.body) if house else problem.body,
        status_code=problem.status,
        headers=problem.headers,
        media_type=MEDIA_TYPE,
    )


def logged_problem(error: Exception) -> Problem:
    """The same without the answer; what nobody expected is in the log by then."""
    problem = problem_of(error)
    if problem.status == HTTPStatus.INTERNAL_SERVER_ERROR:
        _log.error("a request failed", exc_info=error)
    return problem


def problem_of(error: Exception) -> Problem:
    """Whatever it was; of what nobody expected, no more is told than that."""
    match error:
        case Problem():
            return error
        case BridleError():
            return trouble_of(error)
        case ValidationException():
            return _invalid(error)
        case RecursionError():  # ours do not recurse; JSON can be as deep as somebody likes
            return Problem(400, "invalid_body", "The body is nested too deeply.", "Send less.")
        case HTTPException() if error.status_code < HTTPStatus.INTERNAL_SERVER_ERROR:
            return _refused(error)
        case _:
            return Problem(
                500,
                "internal",
                "Something went wrong here that nobody expected.",
                "The server's log has what it was. Please report it.",
            )


def _invalid(error: ValidationException) -> Problem:
    """The first mistake is told: the others often follow from it."""
    extra = error.extra if isinstance(error.extra, list) and error.extra else [{}]
    message, key = str(extra[0].get("message", error.detail)), str(extra[0].get("key", ""))
    source = getattr(extra[0].get("source"), "value", extra[0].get("source"))
    about = {"field": key} if key and key != "data" else None
    if source != "body":
        remedy = "Correct that parameter of the address and ask again."
        return Problem(400, "invalid_parameter", sentence(f"`{key}`: {message}"), remedy, about)
    unknown = _UNKNOWN_FIELD.search(message)
    if unknown:
        name = unknown[1] if about is None else f"{key}.{unknown[1]}"
        detail, remedy = f"There is no field `{name}` here.", "Leave it out, or correct its name."
        return Problem(400, "unknown_field", detail, remedy, {"field": name})
    where = f"`{key}`: " if about else ""
    remedy = "Correct the body and send it again."
    return Problem(400, "invalid_body", sentence(where + message), remedy, about)


def _refused(error: HTTPException) -> Problem:
    """What Litestar itself would not take."""
    code, remedy = _BY_STATUS.get(error.status_code, ("bad_request", "Correct it and ask again."))
    detail = {404: "There is nothing at this address.", 405: "This address takes other methods."}
    words = detail.get(error.status_code, sentence(error.detail))
    return Problem(error.status_code, code, words, remedy, headers=dict(error.headers or {}))


_BY_STATUS = {
    400: ("invalid_body", "Send JSON, as the API's description has it."),
    404: ("not_found", "GET /api/v1/openapi.json has all addresses."),
    405: ("method_not_allowed", "The header Allow has those that it takes."),
    413: ("too_large", "Send less."),
}
