"""Folds over a session's events: what people and programs look at. Pure."""
