"""What follows by itself when a session's stream has grown, or its process has come or gone.

Owns the parts that hear of it, and the order in which they do. What somebody asks for is the
`supervisor`'s.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..views import stream
from .charge import Charge
from .escalation import Escalation
from .fleet import Fleet
from .guards import Guards
from .lineage import LineageLimits
from .means import Means
from .notes import note
from .pen import Pen
from .sessions import Sessions
from .signs import Well, sign_in, tells_more


class Course:
    """The sessions, what holds them back, and the queue; `pen` writes the supervisor's stream."""

    def __init__(self, means: Means, size: int, lineage: LineageLimits, free_bytes: int) -> None:
        self._means = means
        self.sessions = Sessions(means, self._told, self._changed)
        self.guards = Guards(means, self.sessions, lineage, free_bytes, self.pump)
        self.fleet = Fleet(self.sessions, size, means.now, self._released, self.guards.has_room)
        self.pen = Pen(means.owners.of(stream.SUPERVISOR))
        self.escalation = Escalation(means, self.sessions)

    def _told(self, charge: Charge, entries: Sequence[stream.Entry]) -> None:
        """Its stream has grown."""
        for one in entries:
            match sign_in(one):
                case stream.Limited() as limited:
                    if tells_more(limited, charge.record.facts):
                        charge.write(stream.LIMITED, limited)
                    if self.fleet.hold(limited):
                        self.pen.write([note(stream.HELD, limited)])
                case Well():
                    self.fleet.is_well()
                    if charge.record.facts.is_limited or charge.record.facts.needs_login:
                        charge.write(stream.UNLIMITED, stream.Unlimited(at=one.at))
        charge.pausing.difference_update(charge.record.facts.pauses)
        self.guards.told(charge)
        self.escalation.told(charge)
        self._go_on(charge)
        if charge.record.facts.is_queued:
            self.fleet.pump()

    def _changed(self, charge: Charge) -> None:
        """Its process has come or gone."""
        self._go_on(charge)
        self.fleet.pump()

    def pump(self) -> None:
        for charge in self.sessions:
            self._go_on(charge)
        self.fleet.pump()

    def _released(self) -> None:
        self.pen.write([note(stream.RELEASED, stream.Released(at=self._means.now()))])
        for charge in self.sessions:
            facts = charge.record.facts
            if facts.is_limited or facts.needs_login:
                charge.write(stream.UNLIMITED, stream.Unlimited(at=self._means.now()))
        self.pump()

    def _go_on(self, charge: Charge) -> None:
        if self.fleet.may_go_on and not charge.record.facts.pauses and not charge.pausing:
            charge.deliver(one_by_one=self.guards.counts(charge))
