"""Folders that people trust: what one would bring is shown first, and just that is trusted."""

from __future__ import annotations

import asyncio
from typing import Annotated

from litestar import Response, delete, get, put
from litestar.params import JSONBody, QueryParameter

from ...approvals.trust import Trust, TrustedFolders
from ...policy.policy import RuleText
from ...session.folder import survey_of
from ..access import HttpRequest, takes
from ..given import folder_of, path_of
from ..house import House, TheHouse
from ..problems import Problem
from ..shapes.trust import SurveyView, Trusting
from ..shown import Reveal, shown

Folder = Annotated[str, QueryParameter(max_length=4096, description="An absolute path.")]


@get("/trust", opt=takes("person", "reader"))
async def list_trusted(
    request: HttpRequest, house: TheHouse, reveal: Reveal = False
) -> Response[list[Trust]]:
    """The folders that are trusted, by path."""
    return shown(house, request.user, reveal, await _folders(house).list())


# It reads files that nobody but people may point to.
@get("/trust/survey")
async def survey(
    request: HttpRequest, house: TheHouse, folder: Folder, reveal: Reveal = False
) -> Response[SurveyView]:
    """What a folder would bring to an agent by its own settings, if it were trusted."""
    found = await asyncio.to_thread(survey_of, folder_of(folder))
    view = SurveyView(
        folder=found.folder,
        digest=found.digest,
        brings=found.brings,
        rules=tuple(RuleText(rule.behavior, rule.text, rule.source) for rule in found.rules),
        has_instructions=bool(found.instructions),
        is_trusted=await _folders(house).is_trusted(found.folder, found.digest),
    )
    return shown(house, request.user, reveal, view)


@put("/trust")
async def trust(request: HttpRequest, house: TheHouse, data: JSONBody[Trusting]) -> Response[Trust]:
    """Trust a folder with just what was shown. It holds from the next start of an agent there."""
    found = await asyncio.to_thread(survey_of, folder_of(data.folder))
    if not found.digest:
        words = "The folder brings more than can be looked at, so it can't be trusted."
        raise Problem(409, "too_much", words, "Take away what it need not have.")
    if found.digest != data.digest:
        raise Problem(
            409,
            "folder_changed",
            "The folder brings something else than was shown.",
            "GET /trust/survey again, and look at it.",
            {"digest": found.digest},
        )
    brings = [str(brought) for brought in found.brings]
    by = request.user.person
    trusted = await _folders(house).trust(found.folder, found.digest, brings, by)
    return shown(house, request.user, False, trusted)


@delete("/trust")
async def distrust(request: HttpRequest, house: TheHouse, folder: Folder) -> None:
    """Trust it no longer, from the next start of an agent there. It may be gone by now."""
    path = path_of(folder)
    found = None
    if path and "\0" not in folder:
        found = await _folders(house).distrust(str(path), request.user.person)
    if found is None:
        words = "This folder never was trusted."
        raise Problem(404, "unknown_folder", words, "GET /trust lists those that are.")


def _folders(house: House) -> TrustedFolders:
    return TrustedFolders(house.supervisor.journal, house.now)


HANDLERS = [list_trusted, survey, trust, distrust]
