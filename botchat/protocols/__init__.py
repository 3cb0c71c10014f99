"""Protocols: how dialogues are generated, how cases are made and worded, how replies are read."""
