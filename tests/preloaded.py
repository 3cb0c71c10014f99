"""What a run against an endpoint imports, for the process that `tests.processes` forks from."""

import importlib

for name in ("batch", "endpoint"):
    importlib.import_module(f"botchat.models.{name}")
importlib.import_module("botchat.metrics.lengths").counter()
for name in ("cli.main", "pipeline.generate", "pipeline.judge"):
    importlib.import_module(f"botchat.{name}")
