"""Importers: bytes in, seeds out. Files and archives are opened by `botchat.pipeline.seeds`.

A new importer is a file here, chosen by suffix or name in `botchat.pipeline.seeds`; for people
it is told in ``seeds/README.md``.
"""
