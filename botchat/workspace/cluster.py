"""``[cluster]`` of botchat.toml: who makes the calls of a run, and where its ledger is shared."""

from __future__ import annotations

from typing import Annotated

import msgspec

from botchat.errors import ConfigError


class ClusterSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``[cluster]``: where calls are made; docs/cluster.md."""

    engine: str | None = None
    """A backend of joblib: ``loky``, ``dask``, ``ray`` or any that is registered."""
    workers: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """Parts of a run at a time; ``None``: as many as the engine has places."""
    address: str | None = None
    """Of the scheduler; ``None``: workers on this machine."""
    store: str | None = None
    """Where segments of the ledger are, as fsspec names it; ``None``: in the workspace."""
    hand_in_calls: Annotated[int, msgspec.Meta(ge=1)] = 100
    """A worker stores what it has after so many calls, or after ``hand_in_s`` (seconds)."""
    hand_in_s: Annotated[float, msgspec.Meta(gt=0, le=1e12)] = 30.0

    def where(self, engine: str | None, workers: int | None, store: str | None) -> ClusterSettings:
        """These settings with what is given; an address belongs to the engine beside it."""
        if workers is not None and (workers < 1 or (engine or self.engine) is None):
            raise ConfigError(
                f"--workers {workers}: "
                + ("give at least 1" if workers < 1 else "name their --engine, such as loky")
            )
        return ClusterSettings(
            engine=engine or self.engine,
            workers=workers or self.workers,
            address=self.address if engine in (None, self.engine) else None,
            store=store or self.store,
            hand_in_calls=self.hand_in_calls,
            hand_in_s=self.hand_in_s,
        )
