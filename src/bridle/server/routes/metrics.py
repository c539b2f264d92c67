"""Numbers for Prometheus."""

from __future__ import annotations

from litestar import Response, get

from ..access import takes
from ..house import TheHouse
from ..metrics import MEDIA_TYPE, look


@get("/metrics", opt=takes("person", "reader"), media_type="text/plain")
async def metrics(house: TheHouse) -> Response[bytes]:
    """How the server and its agents are, as Prometheus reads it."""
    return Response(house.metrics.text(await look(house)), media_type=MEDIA_TYPE)


ROOT_HANDLERS = [metrics]
