"""Examples for the description of the API: each is a real Struct, so none can be wrong."""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from ..approvals import model
from ..approvals.remember import RememberedRule
from ..approvals.trust import Trust
from ..policy.policy import Policy
from ..policy.rules import parse_rule
from ..policy.verdicts import Allowed, Asked
from ..protocol.answers import ContextCategory, ContextUsage, Initialized, McpServer, McpServers
from ..session.folder import Brought
from ..views import ModelUse, Tokens, Usage
from .access import Caller
from .shapes import decisions
from .shapes.approvals import Candidate, Explanation, Scope
from .shapes.conversations import ConversationView
from .shapes.events import EventView
from .shapes.house import (
    AcceptedView,
    Accepting,
    AnchorsView,
    AuditView,
    JournalHealth,
    Released,
    SessionTotal,
    Total,
    UsageView,
    VerdictView,
    Verifying,
    Well,
)
from .shapes.pages import Page
from .shapes.policies import (
    PolicyChosen,
    PolicyText,
    PolicyToCheck,
    PolicyView,
    Readable,
    SessionPolicy,
    TrialView,
    Tried,
    TriedCall,
    Trying,
)
from .shapes.sessions import (
    Forking,
    InterruptedView,
    LaunchView,
    LimitsGiven,
    Modelling,
    ModelView,
    ModeView,
    Moding,
    NewSession,
    Prompting,
    Restarting,
    Rewinding,
    RewoundView,
    Sent,
    SessionView,
    Stopping,
)
from .shapes.tokens import MadeToken, NewToken, TicketView, TokenView
from .shapes.trust import SurveyView, Trusting

ID = "0b2c8f4e-3f0e-4c7e-9a52-5d8d5f1c7a11"
UUID = "7d9f1a3c-2b1e-4f6a-8c0d-1e2f3a4b5c6d"
NOW = 1_794_700_800.0
ADA = model.Person("ada", "terminal")
POLICY = Policy("edits", rules=[parse_rule("Bash(npm test:*)", "allow", "team:2")])
TEXT = 'preset = "edits"\nallow = ["Bash(npm test:*)"]\n'

LAUNCH = LaunchView(
    id="9f2a61b04c7d3e58",
    at=NOW + 1,
    pid=4711,
    version="2.1.325",
    ready_at=NOW + 2,
    ended_at=None,
    how=None,
    code=None,
    signal=None,
    words="",
    stderr="",
)
SESSION = SessionView(
    id=ID,
    name="greeter",
    folder="/home/ada/app",
    state="awaiting approval",
    until=None,
    outcome="running",
    labels={"team": "web"},
    created_at=NOW,
    by="ada",
    parent=None,
    lineage=(),
    forked_from=None,
    model="sonnet",
    mode="default",
    policy=POLICY.digest,
    limits=LimitsGiven(turns=20, cost_usd=5.0),
    orphans="stop",
    loopback=False,
    asks_above=True,
    external=None,
    turns=3,
    cost_usd=0.42,
    tokens=Tokens(1200, 340, 56_000, 4_000),
    seconds=61.5,
    approvals=["5d1f0c9b8a7e6d5c4b3a"],
    waiting=0,
    claude_session_id="c0ffee00-0000-4000-8000-000000000000",
    launches=1,
    launch=LAUNCH,
    last_at=NOW + 60,
    seq=214,
    operations=("send", "interrupt", "stop", "pause"),
)
APPROVAL = model.Approval(
    session=ID,
    launch=LAUNCH.id,
    kind="tool",
    tool="Bash",
    input={"command": "npm publish"},
    tool_use_id="toolu_01",
    suggestions=("Bash(npm publish)",),
    reason="no rule speaks of it, and edits asks about commands that may do more than read",
    rule="preset edits",
    folder="/home/ada/app",
    id="5d1f0c9b8a7e6d5c4b3a",
    digest="f3a1c2",
    created=NOW + 55,
    requested_seq=210,
    seq=210,
)
RULE = RememberedRule(
    id=APPROVAL.id, rule="Bash(npm publish)", behavior="allow", by=ADA, at=NOW, folder="/home/ada"
)
KEPT = PolicyView(
    name="team",
    digest=POLICY.digest,
    revision=3,
    text=TEXT,
    preset="edits",
    has_guard=True,
    rules=POLICY.texts,
    by=ADA,
    at=NOW,
)
TOKEN = TokenView(
    id="a1b2c3",
    kind="token",
    role="reader",
    name="grafana",
    session="",
    tail="x7Qk",
    created_at=NOW,
    expires_at=None,
    is_first=False,
)
ALLOWED = Allowed("Bash(npm test:*)", "team:2")
ASKED = Asked("no rule speaks of it, and edits asks about commands that may do more than read")

#: By the name of the route's function.
BODIES: dict[str, Any] = {
    "create_token": NewToken(role="reader", name="grafana"),
    "create_session": NewSession(
        folder="~/app",
        prompt="Make the tests pass",
        name="greeter",
        labels={"team": "web"},
        policy="edits",
        limits=LimitsGiven(cost_usd=5.0),
    ),
    "send": Prompting(prompt="Now write the docs"),
    "stop": Stopping(words="it is done"),
    "start": Restarting(prompt="Begin anew"),
    "resume": Restarting(prompt="Go on", env={"API_KEY": "…"}),
    "fork": Forking(prompt="Try it in another way", name="greeter-2"),
    "set_limits": LimitsGiven(turns=20, cost_usd=10.0),
    "set_mode": Moding(mode="acceptEdits"),
    "set_model": Modelling(model="opus"),
    "rewind": Rewinding(uuid=UUID, dry_run=True),
    "decide": decisions.Deciding(
        choice=decisions.Approve(remember=decisions.ForSession("Bash(npm publish)")),
        shown=APPROVAL.digest,
    ),
    "put_policy": PolicyText(text=TEXT, revision=2),
    "check_policy": PolicyToCheck(text=TEXT),
    "test_policy": Trying(
        policy="team",
        folder="~/app",
        calls=[TriedCall(tool="Bash", input={"command": "npm test"}, expect="allow")],
    ),
    "set_session_policy": PolicyChosen(policy="team"),
    "trust": Trusting(folder="~/app", digest="9c1185a5c5e9fc54"),
    "verify_audit": Verifying(session="greeter"),
    "accept_audit": Accepting(stream="supervisor"),
}

ANSWERS: dict[str, Any] = {
    "me": Caller(role="person", name="ada", via="terminal"),
    "list_tokens": [TOKEN],
    "create_token": MadeToken(token=TOKEN, text="bridle_r_…x7Qk"),
    "create_ticket": TicketView(url="http://127.0.0.1:8642/login?ticket=…"),
    "list_sessions": Page(items=[SESSION], next=f"{NOW!r}_{ID}"),
    "create_session": SESSION,
    "get_session": SESSION,
    "send": Sent(UUID),
    "interrupt": InterruptedView(still_queued=[], cancelled=[UUID]),
    "set_mode": ModeView(mode="acceptEdits"),
    "set_model": ModelView(model="opus"),
    "rewind": RewoundView(
        can_rewind=True, error=None, files_changed=["src/a.py"], insertions=3, deletions=1
    ),
    "info": Initialized(claude_code_version="2.1.325"),
    "context": ContextUsage(
        categories=[ContextCategory("Messages", 12_000)], total_tokens=12_000, max_tokens=200_000
    ),
    "mcp": McpServers([McpServer("github", "connected")]),
    "events": Page(
        items=[EventView(seq=1, at=NOW, kind="session.queued", body=Raw(b'{"at": 1794700800.0}'))],
        next="1",
    ),
    "session_usage": Usage(
        turns=3, cost_usd=0.42, models={"sonnet": ModelUse(Tokens(1200, 340), 0.42)}
    ),
    "list_approvals": Page(items=[APPROVAL]),
    "get_approval": APPROVAL,
    "decide": APPROVAL,
    "explain": Explanation(
        text=f"Asked by preset edits: {APPROVAL.reason}",
        reason=APPROVAL.reason,
        rule=APPROVAL.rule,
        source="",
        guard="",
        notes=(),
        always=[
            Candidate(
                rule="Bash(npm publish)",
                scopes=[
                    Scope(
                        where="session",
                        words="this session, as long as it is there",
                        sessions=1,
                        remember=model.ForSession("Bash(npm publish)"),
                    )
                ],
            )
        ],
    ),
    "list_rules": [RULE],
    "list_policies": [KEPT],
    "get_policy": KEPT,
    "put_policy": KEPT,
    "check_policy": Readable(
        digest=POLICY.digest, preset="edits", has_guard=True, rules=POLICY.texts
    ),
    "test_policy": TrialView(
        results=[
            Tried(
                behavior="allow",
                verdict=ALLOWED,
                text="Allowed by Bash(npm test:*) (team:2)",
                is_expected=True,
            ),
            Tried(behavior="ask", verdict=ASKED, text=f"Asked: {ASKED.because}", is_expected=None),
        ],
        is_expected=True,
    ),
    "get_session_policy": SessionPolicy(
        digest=POLICY.digest,
        source="stored policy team",
        by=ADA,
        at=NOW,
        preset="edits",
        has_guard=True,
        rules=POLICY.texts,
        remembered=[RULE],
        is_running=True,
    ),
    "set_session_policy": SESSION,
    "list_conversations": [
        ConversationView(
            id="0c1f8e6a-2f0b-4f5e-9d0e-6f3b7a1c2d3e",
            modified=NOW,
            bytes=20_480,
            first_prompt="Make the greeting better.",
        )
    ],
    "list_trusted": [
        Trust(
            folder="/home/ada/app",
            digest="9c1185a5c5e9fc54",
            shown=("hooks (/home/ada/app/.claude/settings.json)",),
            by=ADA,
            at=NOW,
        )
    ],
    "survey": SurveyView(
        folder="/home/ada/app",
        digest="9c1185a5c5e9fc54",
        brings=(Brought("hooks", "/home/ada/app/.claude/settings.json", '{"Stop":[…]}'),),
        rules=(),
        has_instructions=True,
        is_trusted=False,
    ),
    "usage": UsageView(
        total=Total(turns=3, cost_usd=0.42, tokens=Tokens(1200, 340), seconds=61.5),
        sessions=[
            SessionTotal(
                id=ID,
                name="greeter",
                state="idle",
                turns=3,
                cost_usd=0.42,
                tokens=Tokens(1200, 340),
                seconds=61.5,
            )
        ],
        models=None,
    ),
    "health": Well(
        version="0.1.0",
        home="/home/ada/.bridle",
        uptime=3600.0,
        is_asleep=False,
        sessions={"idle": 2},
        running=2,
        queued=0,
        approvals=1,
        disk_free=50_000_000_000,
        journal=JournalHealth(is_writable=True, size_bytes=4_096_000, problem=""),
        held=None,
    ),
    "release": Released(was_held=True),
    "verify_audit": AuditView(
        is_intact=True,
        streams=[VerdictView(stream=ID, sealed=4, is_intact=True, broken_at=None, reason="")],
        anchors=AnchorsView(is_intact=True, reason="", remedy="", command=""),
    ),
    "accept_audit": AcceptedView(accepted={"supervisor": "events 90 to 100 are missing"}),
}
