"""`python -m bridle.cli` is the `bridle` command."""

from __future__ import annotations

from .main import main

main()
