"""A server as a process of its own, which says when it serves: serving_program.py HOME PORT"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from bridle.server.serving import Ready, ServeSettings, serve


def told(ready: Ready) -> None:
    sys.stdout.write(f"{ready.url} {ready.socket}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(serve(ServeSettings(home=Path(sys.argv[1]), port=int(sys.argv[2])), told))
