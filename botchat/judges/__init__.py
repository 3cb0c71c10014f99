"""Judges: each judge takes any protocol's case."""
