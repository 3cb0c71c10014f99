"""Importers: bytes in, seeds out. Files and archives are opened by `botchat.pipeline.seeds`."""
