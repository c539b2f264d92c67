"""The differential fuzz: scripts that are read by us and run by a real shell, side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from bridle.policy.shell.programs import Commands, read_commands

from .compare import misses
from .sandbox import Sandbox
from .scripts import script

_AT_ONCE = 500


@dataclass
class Report:
    """How much was tried, and what was run without having been seen."""

    generated: int = 0
    accepted: int = 0
    ran: int = 0
    unfinished: int = 0
    missed: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        figures = (
            f"{self.generated} scripts, {self.accepted} read, {self.ran} of these ran something,"
            f" {self.unfinished} did not end, {len(self.missed)} misses"
        )
        return "\n".join((figures, *self.missed[:20]))


def fuzz(
    wanted: int,
    *,
    seed: int,
    shell: str = "bash",
    has_wrappers: bool = False,
    most_misses: int = 20,
) -> Report:
    """Scripts from this seed on, until so many were read and really ran something."""
    report = Report()
    accepted = _accepted(seed, report, has_wrappers=has_wrappers, is_posix=shell == "dash")
    with Sandbox(shell, has_wrappers=has_wrappers or shell == "dash") as sandbox:
        while report.ran < wanted and len(report.missed) < most_misses:
            batch = [next(accepted) for _ in range(min(_AT_ONCE, wanted - report.ran + 20))]
            for (at, text, seen), ran in zip(
                batch, sandbox.run([it[1] for it in batch]), strict=True
            ):
                report.ran += bool(ran.commands)
                report.unfinished += not ran.is_finished
                if found := misses(seen, ran):
                    report.missed.append(f"seed {at}: {text!r}: {'; '.join(found)}")
    return report


def _accepted(
    seed: int, report: Report, *, has_wrappers: bool, is_posix: bool
) -> Iterator[tuple[int, str, Commands]]:
    while True:
        text = script(seed, has_wrappers=has_wrappers, is_posix=is_posix)
        seen = read_commands(text, is_posix=is_posix)
        report.generated += 1
        if not seen.unclear:
            report.accepted += 1
            yield seed, text, seen
        seed += 1
