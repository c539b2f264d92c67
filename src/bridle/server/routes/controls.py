"""What is done with a session: told, interrupted, stopped, started again, forked, paused."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable

import msgspec
from litestar import Response, post, put
from litestar.params import FromPath, JSONBody

from ...policy.presets import told_of_mode
from ...views import stream
from ..access import HttpRequest
from ..given import name_of, plain_env, prompt_of
from ..house import House, TheHouse
from ..idempotency import Done, Intent, checked_key
from ..outsiders import shut_out
from ..shapes.sessions import (
    Forking,
    InterruptedView,
    LimitsGiven,
    Modelling,
    ModelView,
    ModeView,
    Moding,
    Prompting,
    Restarting,
    Rewinding,
    RewoundView,
    Sent,
    SessionView,
    Stopping,
    view_of,
)
from ..shown import answered, shown, veiled
from .sessions import IdempotencyKey, made_before

READ = 500
#: How long an answer waits for the session's record to follow its log.
CAUGHT_UP_SECONDS = 5.0


@post("/sessions/{session:str}/send", status_code=202)
async def send(
    request: HttpRequest,
    house: TheHouse,
    session: FromPath[str],
    data: JSONBody[Prompting],
    key: IdempotencyKey = None,
) -> Response[Sent]:
    """Have the agent told this. It is answered once the prompt is written down."""
    supervisor = house.supervisor
    found = supervisor.get(session).id

    async def last_seq() -> int:
        return (await supervisor.journal.log.info(found)).last_seq

    async def do(intent: Intent, is_retry: bool) -> Done:
        is_sent = is_retry and await _is_prompted(house, found, intent)
        if not is_sent:
            prompt = prompt_of(data.prompt)
            await supervisor.send(found, prompt, by=request.user.name, uuid=intent.id)
        return Done(202, msgspec.json.encode(Sent(intent.id)), is_sent)

    asked = (f"POST /sessions/{found}/send", data)
    done = await house.keys.once(request.user, checked_key(key), asked, do, last_seq)
    return answered(done.body, done.status, done.headers)


async def _is_prompted(house: House, session: str, intent: Intent) -> bool:
    """Whether an earlier attempt had come so far."""
    log, after = house.supervisor.journal.log, intent.seq
    uuid = f'"uuid":"{intent.id}"'.encode()
    while events := await log.read(session, after, READ):
        if any(event.kind == stream.PROMPTED and uuid in event.body for event in events):
            return True
        after = events[-1].seq
    return False


@post("/sessions/{session:str}/interrupt", status_code=200)
async def interrupt(
    request: HttpRequest, house: TheHouse, session: FromPath[str]
) -> Response[InterruptedView]:
    """End the turn that runs; what waits for an approval is cancelled."""
    told = await house.supervisor.interrupt(session)
    view = InterruptedView(still_queued=told.still_queued, cancelled=told.cancelled)
    return shown(house, request.user, False, view)


@post("/sessions/{session:str}/stop", status_code=200)
async def stop(
    request: HttpRequest,
    house: TheHouse,
    session: FromPath[str],
    data: JSONBody[Stopping | None] = None,
) -> Response[SessionView]:
    """End the agent and all that it has started, within 12 seconds."""
    words = data.words if data else ""
    record = house.supervisor.get(session)

    async def stopped() -> None:
        await house.supervisor.stop(record.id, by=request.user.name, words=words)
        if record.external:
            await shut_out(house, record.id)

    return await _after(house, request, session, stopped())


@post("/sessions/{session:str}/start", status_code=200)
async def start(
    request: HttpRequest,
    house: TheHouse,
    session: FromPath[str],
    data: JSONBody[Restarting | None] = None,
) -> Response[SessionView]:
    """Start it with a new conversation."""
    given = data or Restarting()
    prompt = None if given.prompt is None else prompt_of(given.prompt)
    starting = house.supervisor.start(session, prompt=prompt, env=plain_env(given.env))
    return await _after(house, request, session, starting)


@post("/sessions/{session:str}/resume", status_code=200)
async def resume(
    request: HttpRequest,
    house: TheHouse,
    session: FromPath[str],
    data: JSONBody[Restarting | None] = None,
) -> Response[SessionView]:
    """Start it again, where its conversation was."""
    given = data or Restarting()
    prompt = None if given.prompt is None else prompt_of(given.prompt)
    resuming = house.supervisor.resume(session, prompt=prompt, env=plain_env(given.env))
    return await _after(house, request, session, resuming)


@post("/sessions/{session:str}/pause", status_code=200)
async def pause(
    request: HttpRequest, house: TheHouse, session: FromPath[str]
) -> Response[SessionView]:
    """End its turn, and tell it nothing more until it is unpaused."""
    pausing = house.supervisor.pause(session, by=request.user.name)
    return await _after(house, request, session, pausing)


@post("/sessions/{session:str}/unpause", status_code=200)
async def unpause(
    request: HttpRequest, house: TheHouse, session: FromPath[str]
) -> Response[SessionView]:
    """Let it go on."""
    unpausing = house.supervisor.unpause(session, by=request.user.name)
    return await _after(house, request, session, unpausing)


@post("/sessions/{session:str}/fork")
async def fork(
    request: HttpRequest,
    house: TheHouse,
    session: FromPath[str],
    data: JSONBody[Forking | None] = None,
    key: IdempotencyKey = None,
) -> Response[SessionView]:
    """Make a new session that goes on from what this one has said so far."""
    given, found = data or Forking(), house.supervisor.get(session).id

    async def do(intent: Intent, is_retry: bool) -> Done:
        if is_retry and (made := await made_before(house, intent.id)):
            return made
        record = await house.supervisor.fork(
            found,
            by=request.user.person,
            prompt=None if given.prompt is None else prompt_of(given.prompt),
            name=name_of(given.name),
            id=intent.id,
        )
        return Done(201, msgspec.json.encode(view_of(record, house.now())))

    asked = (f"POST /sessions/{found}/fork", given)
    done = await house.keys.once(request.user, checked_key(key), asked, do)
    body = veiled(house, request.user, False, done.body)
    return answered(body, done.status, done.headers)


# --- how it works from now on


@put("/sessions/{session:str}/limits")
async def set_limits(
    request: HttpRequest, house: TheHouse, session: FromPath[str], data: JSONBody[LimitsGiven]
) -> Response[SessionView]:
    """Other limits from now on; where it was paused by the old ones, it goes on."""
    setting = house.supervisor.set_limits(session, data, by=request.user.name)
    return await _after(house, request, session, setting)


@put("/sessions/{session:str}/mode")
async def set_mode(house: TheHouse, session: FromPath[str], data: JSONBody[Moding]) -> ModeView:
    """Another permission mode of the CLI that runs. It never loosens the policy."""
    live = house.supervisor.live(session)
    told = await live.set_permission_mode(data.mode)
    note = told_of_mode(data.mode, live.policy.policy.preset) if live.policy else ""
    return ModeView(mode=told.mode, note=note)


@put("/sessions/{session:str}/model")
async def set_model(
    house: TheHouse, session: FromPath[str], data: JSONBody[Modelling]
) -> ModelView:
    """Another model for the CLI that runs."""
    told = await house.supervisor.live(session).set_model(data.model)
    return ModelView(model=told.model)


@post("/sessions/{session:str}/rewind", status_code=200)
async def rewind(
    request: HttpRequest, house: TheHouse, session: FromPath[str], data: JSONBody[Rewinding]
) -> Response[RewoundView]:
    """Put files back as they were at a prompt, or only tell which those would be."""
    live = house.supervisor.live(session)
    told = await live.rewind_files(data.uuid, dry_run=data.dry_run)
    view = RewoundView(
        can_rewind=told.can_rewind,
        error=told.error,
        files_changed=told.files_changed,
        insertions=told.insertions,
        deletions=told.deletions,
    )
    return shown(house, request.user, False, view)


async def _after(
    house: House, request: HttpRequest, session: str, doing: Awaitable[object]
) -> Response[SessionView]:
    """The session as it is when this is done."""
    await doing
    found = house.supervisor.get(session).id
    last = (await house.supervisor.journal.log.info(found)).last_seq
    with contextlib.suppress(TimeoutError):  # where the log can't be read, it is what it was
        await house.supervisor.wait(found, lambda record: record.seq >= last, CAUGHT_UP_SECONDS)
    record = house.supervisor.get(found)
    return shown(house, request.user, False, view_of(record, house.now()))


HANDLERS = [
    send,
    interrupt,
    stop,
    start,
    resume,
    pause,
    unpause,
    fork,
    set_limits,
    set_mode,
    set_model,
    rewind,
]
