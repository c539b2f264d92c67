"""What keeps a server from starting: a branch of the tree in `bridle.errors`.

ServerError
├── AddressInUse               another program listens there
├── AddressRefused             an address that can't be listened on, or must not be
└── InsideAgent                we are an agent's process ourselves, or nobody can say
"""

from __future__ import annotations

from ..errors import BridleError


class ServerError(BridleError):
    """The server can't be started. Nothing was touched."""


class AddressInUse(ServerError):
    """Another program listens there."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(
            f"port {port} of {host} is in use by another program;"
            " if that is a Bridle of another home, give this one another --port (0: any that is"
            " free), else stop the other program"
        )
        self.host = host
        self.port = port


class AddressRefused(ServerError):
    """An address that can't be listened on, or that others than this machine reach."""

    def __init__(self, host: str, reason: str) -> None:
        super().__init__(f"can't listen on {host}: {reason}")
        self.host = host
        self.reason = reason


class InsideAgent(ServerError):
    """We are a process of an agent of the home, or may be: a person's rights are not for us."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"{reason}; agents are looked after by people: do it in a terminal of your own"
        )
        self.reason = reason
