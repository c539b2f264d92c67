"""The address that lets a browser in: who gets to see it, and how a browser is brought there.

Whoever has it first is the person. So it is shown on a terminal alone, unless it is asked for, and
is no argument of a program: those can be seen by everybody on the machine.
"""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path


def is_seen_by_a_person() -> bool:
    """Whether what is printed goes to a terminal."""
    return sys.stdout.isatty()


def open_browser(home: Path, address: str) -> bool:
    """Whether one was found. By way of a file that its owner alone can read, and that stays until
    the next time: nobody knows when a browser has read it, and the ticket in it works once."""
    import webbrowser

    from ..home.files import write_private

    file = home / "login.html"
    target = escape(address, quote=True)
    write_private(
        file,
        '<!doctype html><meta charset="utf-8"><title>Bridle</title>'
        '<meta name="referrer" content="no-referrer">'
        f'<meta http-equiv="refresh" content="0; url={target}">'
        f'<p><a href="{target}">Open Bridle</a></p>\n',
    )
    return webbrowser.open(file.absolute().as_uri())
