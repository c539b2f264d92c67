"""A tiny MCP server over stdio, for the scenarios: `echo`, and `permit`, which judges tools.

python mcp_server.py allow|deny LOGFILE
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

TOOLS = [
    {"name": "permit", "description": "judge", "inputSchema": {"type": "object"}},
]


def answer(message: dict[str, Any], verdict: str, log: Path) -> dict[str, Any] | None:
    match message.get("method"):
        case "initialize":
            version = message["params"]["protocolVersion"]
            info = {"name": "judge", "version": "1"}
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            return {"tools": TOOLS}
        case "tools/call":
            asked = message["params"]["arguments"]
            with log.open("a") as file:
                file.write(json.dumps(asked) + "\n")
            if verdict == "allow":
                decision = {"behavior": "allow", "updatedInput": asked["input"]}
            else:
                decision = {"behavior": "deny", "message": "the judge says no"}
            return {"content": [{"type": "text", "text": json.dumps(decision)}]}
    return None


def main() -> None:
    verdict, log = sys.argv[1], Path(sys.argv[2])
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        result = answer(message, verdict, log)
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        if result is None:
            reply["error"] = {"code": -32601, "message": "unknown method"}
        else:
            reply["result"] = result
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
