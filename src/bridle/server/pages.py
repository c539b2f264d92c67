"""The page of the server: that it runs, who you are, and the commands to go on with.

Plain HTML, without scripts; its one style is named in its policy by its hash.
"""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from html import escape

from .. import __version__
from .access import Caller

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 40em; margin: 3em auto; padding: 0 1em; }
code, pre { font-family: ui-monospace, monospace; }
pre { background: #8882; padding: 1em; border-radius: 6px; overflow-x: auto; }
:root { color-scheme: light dark; }
"""
_HASH = b64encode(sha256(_STYLE.encode()).digest()).decode()
#: The header Content-Security-Policy of these pages.
PAGE_POLICY = (
    f"default-src 'none'; style-src 'sha256-{_HASH}'; frame-ancestors 'none'; base-uri 'none';"
    " form-action 'self'"
)

_COMMANDS = """bridle start "prompt"     a new agent
bridle ps                 what runs
bridle logs -f NAME       what one says
bridle approvals          what waits for you
bridle approve ID         let it run
bridle --help             all the rest"""


def page_for(caller: Caller, url: str) -> str:
    """For one who is logged in."""
    who = escape(f"{caller.name} ({caller.role})")
    leave = '<form method="post" action="/logout"><button>Log out</button></form>'
    return _page(
        f"<p>It runs at <code>{escape(url)}</code>. You are {who}.</p>"
        f"<pre>{escape(_COMMANDS)}</pre>"
        '<p>Programs: <a href="/api/v1/openapi.json">/api/v1/openapi.json</a></p>'
        + (leave if caller.via == "web" else "")
    )


def page_for_nobody() -> str:
    return _page(
        "<p>It runs, and does not know you. Run <code>bridle url</code> and open what it prints."
        " If you have just done that, load this page again.</p>"
    )


def _page(body: str) -> str:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Bridle</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>'
        f"<body><h1>Bridle {escape(__version__)}</h1>{body}</body></html>"
    )
