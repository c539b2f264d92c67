"""`bridle doctor`: what stands in the way here, and what to do about it."""

from __future__ import annotations

import os

import typer

from ...config import BY_NAME, InvalidSetting, Settings, load
from ..context import Context
from ..errors import FAILED
from ..options import Json
from ..tree import register

PANEL = "Bridle itself"
STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def add_to(app: typer.Typer) -> None:
    lines = ("bridle doctor", "bridle doctor --json | jq '.findings[] | select(.level != \"ok\")'")
    register(app, PANEL, doctor, *lines)


def doctor(context: typer.Context, is_json: Json = False) -> None:
    """Look at all that agents need here, and at what would end them; say what to do.

    Each finding is ok, warn or fail. With a fail the exit code is 1.
    """
    from ..doctoring import Finding, examine
    from ..doctoring.examination import Patient
    from ..tables import Cell, show_table

    here = Context.of(context, is_json=is_json)
    findings: list[Finding] = []
    try:
        settings = here.settings
    except InvalidSetting as error:
        findings.append(Finding("settings", "fail", str(error), "correct it"))
        settings = _without_file(here)
    findings += here.run(examine(Patient(settings, os.environ)))
    if is_json:
        here.give({"findings": findings})
    else:
        rows: list[tuple[Cell, ...]] = [
            ((one.level, STYLES[one.level]), one.about, _told(one.words, one.remedy))
            for one in findings
        ]
        show_table(here, ("", "about", "found"), rows)
    if any(one.level == "fail" for one in findings):
        raise typer.Exit(FAILED)


def _without_file(here: Context) -> Settings:
    """The rest is looked at all the same: with what can't be wrong."""
    home = here.flags.get("home") or os.environ.get(BY_NAME["home"].variable)
    return load({"home": home}, {}, os.devnull)


def _told(words: str, remedy: str) -> str:
    return f"{words}\n→ {remedy}" if remedy else words
