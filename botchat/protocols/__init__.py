"""Protocols: each protocol makes cases, words the question and reads a reply."""
