"""Readers of files from elsewhere: bytes in, seeds, dialogues or votes out."""
