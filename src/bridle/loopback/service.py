"""Calls of the tools by which agents run others, wherever they come from.

Owns how a call is made: arguments are checked, and whatever goes wrong is an answer in words. Who
calls is told by whoever knows it from a pipe or a token.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import msgspec

from ..supervisor import Supervisor
from .calls import Call, Json, Means
from .refusals import Refusal, told
from .registry import METHODS, Method

#: Takes what is secret out of JSON.
Veil: TypeAlias = Callable[[bytes], bytes]


class Loopback:
    """Made once for each supervisor, by `loopback_of`."""

    def __init__(
        self, supervisor: Supervisor, means: Means | None = None, veil: Veil | None = None
    ) -> None:
        self.supervisor = supervisor
        self._means = means or Means(supervisor)
        self._veil = veil

    def veiled(self, veil: Veil) -> Loopback:
        """The same, with answers that go through this: for those who come from outside."""
        return Loopback(self.supervisor, self._means, veil)

    @property
    def methods(self) -> Mapping[str, Method]:
        """By the names of the tools."""
        return METHODS

    async def call(self, caller: str, name: str, arguments: Mapping[str, Any], key: str) -> Json:
        """What it gives. `caller` is a session, known by its pipe or token; `key` the same when
        the same call is made again, and never that of another call of this caller.

        Raises nothing but being cancelled: {"type": "error", "code", "message"} says what is wrong.
        """
        given = await self._called(caller, name, arguments, key)
        if self._veil is None:
            return given
        shown: Json = msgspec.json.decode(self._veil(msgspec.json.encode(given)))
        return shown

    async def _called(self, caller: str, name: str, arguments: Mapping[str, Any], key: str) -> Json:
        try:
            method = METHODS.get(name)
            if method is None:
                raise Refusal("unknown_method", f"there is no tool {name[:100]!r}")
            return await method.do(Call(self._means, caller, key), method.read(arguments))
        except Exception as error:  # noqa: BLE001 - it is the agent's to deal with
            return told(error)


_made: WeakKeyDictionary[Supervisor, Loopback] = WeakKeyDictionary()


def loopback_of(supervisor: Supervisor) -> Loopback:
    """The one of this supervisor."""
    found = _made.get(supervisor)
    if found is None:
        found = _made[supervisor] = Loopback(supervisor)
    return found
