"""A server to try things on: no account, no key, no network, and agents that are none."""
