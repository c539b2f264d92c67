"""Bridle's own tests use the kit's fixtures as its users do."""

pytest_plugins = ["bridle.testing.pytest_plugin"]
