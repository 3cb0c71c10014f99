"""Importers: bytes in, seeds out. Files and archives are opened by `botchat.pipeline.seeds`."""

from __future__ import annotations

from botchat.seeds.casing import readable
from botchat.seeds.mutual import from_mutual, is_mutual_item
from botchat.seeds.spreadsheets import from_csv, from_json, from_jsonl, from_rows, from_xlsx

__all__ = [
    "from_csv",
    "from_json",
    "from_jsonl",
    "from_mutual",
    "from_rows",
    "from_xlsx",
    "is_mutual_item",
    "readable",
]
