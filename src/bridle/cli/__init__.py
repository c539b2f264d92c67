"""The `bridle` command: everything below, put together for a person at a terminal.

`main` is the way in. Nothing heavy is imported before a command needs it.
"""
