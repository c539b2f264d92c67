"""The journal in an SQLite file."""
