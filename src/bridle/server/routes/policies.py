"""Policies: presets and those that are kept under a name; and the one that a session is under."""

from __future__ import annotations

import asyncio

from litestar import Response, delete, get, post, put
from litestar.params import FromPath, JSONBody

from ...approvals.policies import Policies
from ...approvals.trust import TrustedFolders
from ...errors import Asleep, InvalidPolicy, NotPossible
from ...policy.force import InForce
from ...policy.policy import Policy
from ...policy.presets import NAMES, PRESETS
from ...policy.verdicts import Behavior, Call
from ...process.spec import LaunchSpec
from ...session.folder import survey_of
from ...session.policies import in_force
from ...supervisor.kept_policies import parsed
from ...supervisor.policies import Named
from ..access import HttpRequest, takes
from ..given import folder_of
from ..house import House, TheHouse
from ..policies import Kept
from ..problems import Problem
from ..shapes.policies import (
    AnyPolicy,
    Checked,
    PolicyChosen,
    PolicyText,
    PolicyToCheck,
    PolicyView,
    PresetView,
    Readable,
    SessionPolicy,
    TrialView,
    Tried,
    TriedCall,
    Trying,
    Unreadable,
)
from ..shapes.sessions import SessionView, view_of
from ..shown import Reveal, shown


@get("/policies", opt=takes("person", "reader"))
async def list_policies(
    request: HttpRequest, house: TheHouse, reveal: Reveal = False
) -> Response[list[AnyPolicy]]:
    """The presets, then those that are kept, by name."""
    kept = await house.policies.list()
    return shown(house, request.user, reveal, [*map(_preset, NAMES), *map(_view, kept)])


@get("/policies/{name:str}", opt=takes("person", "reader"))
async def get_policy(
    request: HttpRequest, house: TheHouse, name: FromPath[str], reveal: Reveal = False
) -> Response[AnyPolicy]:
    """A preset, or a policy that is kept."""
    policy = _preset(name) if name in NAMES else _view(await house.policies.get(name))
    return shown(house, request.user, reveal, policy)


@put("/policies/{name:str}")
async def put_policy(
    request: HttpRequest, house: TheHouse, name: FromPath[str], data: JSONBody[PolicyText]
) -> PolicyView:
    """Keep a policy under this name, if it can be read; else its line is told, and why."""
    by = request.user.person
    return _view(await house.policies.put(name, data.text, by, data.revision))


@delete("/policies/{name:str}")
async def delete_policy(house: TheHouse, name: FromPath[str]) -> None:
    """Keep it no longer. Sessions that are under what it said stay under that."""
    await house.policies.delete(name)


def _preset(name: str) -> PresetView:
    preset = next(preset for preset in NAMES if preset == name)
    table: dict[str, Behavior] = {str(kind): told for kind, told in PRESETS[preset].items()}
    return PresetView(name=name, digest=Policy(preset).digest, table=table)


def _view(kept: Kept) -> PolicyView:
    policy = parsed(kept.name, kept.policy.text)
    return PolicyView(
        name=kept.name,
        digest=policy.digest,
        revision=kept.revision,
        text=kept.policy.text,
        preset=policy.preset,
        has_guard=policy.has_guard,
        rules=policy.texts,
        by=kept.policy.by,
        at=kept.policy.at,
    )


# --- before one is used


@post("/policies/check", status_code=200)
async def check_policy(data: JSONBody[PolicyToCheck]) -> Checked:
    """Whether this text is a policy; if not, on which line and why."""
    try:
        policy = parsed("policy", data.text)
    except InvalidPolicy as error:
        return Unreadable(line=error.line, reason=error.reason)
    return Readable(
        digest=policy.digest,
        preset=policy.preset,
        has_guard=policy.has_guard,
        rules=policy.texts,
    )


@post("/policies/test", status_code=200)
async def test_policy(
    request: HttpRequest, house: TheHouse, data: JSONBody[Trying]
) -> Response[TrialView]:
    """What a policy would answer to each of these calls, by which rule, and why."""
    given = await house.policies.given(data.policy)
    spec = LaunchSpec(cwd=folder_of(data.folder))
    force = in_force(given.policy if isinstance(given, Named) else given, spec)
    found = await asyncio.to_thread(survey_of, str(spec.cwd))
    folders = TrustedFolders(house.supervisor.journal, house.now)
    if found.git and await folders.is_trusted(found.folder, found.digest):
        force.trust(map(str, found.git))
    results = [_tried(force, call) for call in data.calls]
    is_expected = all(result.is_expected is not False for result in results)
    view = TrialView(results=results, is_expected=is_expected)
    return shown(house, request.user, True, view)


def _tried(force: InForce, tried: TriedCall) -> Tried:
    call = Call(tried.tool, tried.input, tried.mode, tried.cwd)
    verdict = force.judge(call)
    behavior: Behavior = verdict.__struct_config__.tag  # type: ignore[assignment]
    is_expected = None if tried.expect is None else tried.expect == behavior
    text = force.explain(call)
    return Tried(behavior=behavior, verdict=verdict, text=text, is_expected=is_expected)


# --- the one that a session is under


@get("/sessions/{session:str}/policy", opt=takes("person", "reader", "agent"))
async def get_session_policy(
    request: HttpRequest, house: TheHouse, session: FromPath[str], reveal: Reveal = False
) -> Response[SessionPolicy]:
    """The policy that it is under, who has put it there, and what is remembered beside."""
    supervisor = house.supervisor
    record = supervisor.get(session)
    request.user.check_sees(record)
    policies = Policies(supervisor.journal, supervisor.approvals.owners, house.now)
    applied = await policies.applied(record.id)
    if applied is None:
        raise Problem(404, "unknown_policy", "It is under no policy.", "Give it one.")
    policy = Policy.read(await policies.text(applied.digest), applied.files)
    force = _in_force(house, record.id)
    remembered = supervisor.approvals.remembered
    view = SessionPolicy(
        digest=applied.digest,
        source=applied.source,
        by=applied.by,
        at=applied.at,
        preset=force.policy.preset if force else policy.preset,
        has_guard=policy.has_guard,
        rules=policy.texts,
        remembered=[
            *await remembered.always(record.folder),
            *await remembered.of_session(record.id),
        ],
        is_running=force is not None,
    )
    return shown(house, request.user, reveal, view)


def _in_force(house: House, session: str) -> InForce | None:
    try:
        return house.supervisor.live(session).policy
    except (NotPossible, Asleep):
        return None


@put("/sessions/{session:str}/policy")
async def set_session_policy(
    request: HttpRequest, house: TheHouse, session: FromPath[str], data: JSONBody[PolicyChosen]
) -> Response[SessionView]:
    """Put it under another policy, from now on: a preset, one that is kept, or a file."""
    given = await house.policies.given(data.policy)
    record = await house.supervisor.set_policy(session, given, by=request.user.person)
    return shown(house, request.user, False, view_of(record, house.now()))


HANDLERS = [
    list_policies,
    get_policy,
    put_policy,
    delete_policy,
    check_policy,
    test_policy,
    get_session_policy,
    set_session_policy,
]
