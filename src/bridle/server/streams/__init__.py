"""Streams: what is told to many who follow, each at their own pace. docs/streams.md has the wire.

`Streams` is what routes use; `open_streams` makes it.
"""

from .streams import Streams, StreamSettings, open_streams

__all__ = ["StreamSettings", "Streams", "open_streams"]
