"""The supervisor with a door: HTTP and SSE for people, programs and the `bridle` command.

`serve` runs it; `make_app` makes the application for a `House`. docs/api.md says what it offers.
"""
