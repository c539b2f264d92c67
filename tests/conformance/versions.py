"""The versions that scenarios run against; run as a program, it names them all."""

from __future__ import annotations

import os
import sys

from bridle.protocol.capabilities import TESTED_VERSIONS, parse_version

#: Versions between the tested ones, which take prompts up in other ways: for the core alone.
BETWEEN = ("2.1.100", "2.1.207", "2.1.220", "2.1.240", "2.1.300")

#: Others that are just tried: `make conformance VERSION=2.1.250`.
TRIED = tuple(os.environ.get("CONFORMANCE_VERSIONS", "").split())

ALL = TRIED or TESTED_VERSIONS
CORE = TRIED or tuple(sorted((*TESTED_VERSIONS, *BETWEEN), key=parse_version))  # type: ignore[arg-type]

if __name__ == "__main__":
    sys.stdout.write(" ".join(CORE) + "\n")
