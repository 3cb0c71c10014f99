"""Readers of other people's files: bytes in, seeds, dialogues or votes out."""
