"""How many examples the property tests try: many on CI, few while developing."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("ci", max_examples=10_000, deadline=None)
settings.register_profile("dev", max_examples=200, deadline=None)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "dev")
