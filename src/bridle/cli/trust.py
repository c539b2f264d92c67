"""Whether a folder is trusted, as a command knows it that runs an agent, or judges, by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .errors import CommandError

if TYPE_CHECKING:
    from ..session.folder import Survey
    from .context import Context


async def trusted_survey(here: Context, folder: str) -> Survey | None:
    """What the folder brings, if somebody has said that they trust just that. The home knows, and
    need not be asked where there is nothing to trust."""
    from ..session.folder import survey_of

    found = survey_of(folder)
    if not found.brings or not here.settings.home.exists():
        return None
    try:
        async with here.client(offline=True) as client:
            told = await client.trust.survey(found.folder)
    except CommandError:
        return None  # whoever can't be asked has not said yes
    return found if told.is_trusted and told.digest == found.digest else None
