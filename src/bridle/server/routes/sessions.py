"""Sessions: made, listed, looked at, deleted."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from litestar import Response, delete, get, post
from litestar.params import FromPath, HeaderParameter, JSONBody, QueryParameter

from ...errors import UnknownSession
from ...supervisor import SessionRecord, State
from ..access import HttpRequest, takes
from ..given import env_of, folder_of, launch_of, name_of, prompt_of
from ..house import House, TheHouse
from ..idempotency import HEADER, Done, Intent, checked_key
from ..outsiders import shut_out
from ..problems import Problem
from ..shapes.pages import Page
from ..shapes.sessions import NewSession, SessionView, view_of
from ..shown import Reveal, answered, shown, veiled
from .paging import LIMIT, Mark, PageAfter, PageLimit, page_of

IdempotencyKey = Annotated[
    str | None,
    HeaderParameter(
        name=HEADER,
        pattern=r"^[\x20-\x7e]{1,200}$",
        description="A name that you have made up for this request: if it is sent again under the"
        " same name, it is not done again. Kept for 24 hours.",
    ),
]
Labels = Annotated[
    list[str] | None,
    QueryParameter(
        name="label", max_items=20, description="`name=value`, or a `name` that it has; all hold."
    ),
]
States = Annotated[
    list[State] | None, QueryParameter(name="state", description="In one of these states.")
]


@get("/sessions", opt=takes("person", "reader", "agent"))
async def list_sessions(
    request: HttpRequest,
    house: TheHouse,
    states: States = None,
    labels: Labels = None,
    parent: Annotated[str, QueryParameter(description="Started by this session.")] = "",
    folder: Annotated[str, QueryParameter(description="At work in it, or below it.")] = "",
    after: PageAfter = "",
    limit: PageLimit = LIMIT,
    reveal: Reveal = False,
) -> Response[Page[SessionView]]:
    """All sessions, the oldest first."""
    above = _above(house, request, parent)

    def fits(record: SessionRecord) -> bool:
        return (
            request.user.sees(record)
            and (not states or record.state in states)
            and (above is None or record.parent == above)
            and (not folder or _is_below(record.folder, folder))
            and all(_has(record, label) for label in labels or ())
        )

    found = page_of(house.supervisor.list(fits), _mark, after, limit)
    now = house.now()
    views = Page(items=[view_of(record, now) for record in found.items], next=found.next)
    return shown(house, request.user, reveal, views)


def _above(house: House, request: HttpRequest, parent: str) -> str | None:
    """A parent that is gone is still the parent of its children. Whether there is one whom the
    caller does not see is not told."""
    if not parent:
        return None
    try:
        record = house.supervisor.get(parent)
    except UnknownSession:
        return parent
    return record.id if request.user.sees(record) else parent


def _is_below(folder: str, above: str) -> bool:
    return folder == above or folder.startswith(above.rstrip("/") + "/")


def _has(record: SessionRecord, label: str) -> bool:
    name, is_valued, value = label.partition("=")
    return name in record.labels and (not is_valued or record.labels[name] == value)


def _mark(record: SessionRecord) -> Mark:
    return record.created_at, record.id


@post("/sessions")
async def create_session(
    request: HttpRequest,
    house: TheHouse,
    data: JSONBody[NewSession],
    key: IdempotencyKey = None,
) -> Response[SessionView]:
    """Make a session; it is started when there is room."""

    async def do(intent: Intent, is_retry: bool) -> Done:
        if is_retry and (found := await made_before(house, intent.id)):
            return found
        record = await _created(house, request, data, intent.id)
        return Done(201, msgspec.json.encode(view_of(record, house.now())))

    asked = ("POST /sessions", data)
    done = await house.keys.once(request.user, checked_key(key), asked, do)
    body = veiled(house, request.user, False, done.body)
    return answered(body, done.status, done.headers)


async def _created(
    house: House, request: HttpRequest, data: NewSession, session: str
) -> SessionRecord:
    options: dict[str, Any] = launch_of(data.launch, data.model, data.mode)
    return await house.supervisor.create(
        cwd=folder_of(data.folder),
        by=request.user.person,
        prompt=None if data.prompt is None else prompt_of(data.prompt),
        name=name_of(data.name),
        labels=data.labels,
        policy=await house.policies.given(data.policy),
        parent=data.parent,
        limits=data.limits,
        orphans=data.orphans,
        loopback=data.loopback,
        asks_above=data.asks_above,
        env=env_of(data.env),
        start=data.start,
        resume=data.resume,
        id=session,
        **options,
    )


async def made_before(house: House, session: str) -> Done | None:
    """A session that was made for an earlier request, if it was: perhaps it is deleted by now."""
    try:
        record = house.supervisor.get(session)
    except UnknownSession:
        log = house.supervisor.journal.log
        if (await log.info(session)).last_seq and not await log.read(session, 0, 1):
            words = "It was made once, and is deleted by now."
            raise Problem(410, "deleted", words, "Use a new key to make another one.") from None
        return None
    return Done(201, msgspec.json.encode(view_of(record, house.now())), True)


@get("/sessions/{session:str}", opt=takes("person", "reader", "agent"))
async def get_session(
    request: HttpRequest, house: TheHouse, session: FromPath[str], reveal: Reveal = False
) -> Response[SessionView]:
    """A session by its id or its name."""
    record = house.supervisor.get(session)
    request.user.check_sees(record)
    return shown(house, request.user, reveal, view_of(record, house.now()))


@delete("/sessions/{session:str}")
async def delete_session(house: TheHouse, session: FromPath[str]) -> None:
    """Forget a session that has ended, with all that was written down of it, and its tokens."""
    found = house.supervisor.get(session).id
    await house.supervisor.delete(found)
    await shut_out(house, found)


HANDLERS = [list_sessions, create_session, get_session, delete_session]
