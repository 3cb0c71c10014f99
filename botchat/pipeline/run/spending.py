"""What a run may cost, how its calls are made, and who judges."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from botchat.errors import ConfigError

if TYPE_CHECKING:
    from botchat.workspace.folder import Workspace


@dataclass(frozen=True)
class Spending:
    """What a run may cost, None is no limit, and how its calls are made."""

    max_usd: float | None = None
    """Stop cleanly (exit 3) at this cost; the same command goes on."""
    max_calls: int | None = None
    """Stop cleanly after so many calls."""
    max_tokens: int | None = None
    """Stop cleanly after so many tokens."""
    batch: bool = False
    """Half the price, minutes to hours: the Batch API."""
    executor: Any = None
    """Make the calls by workers: loky:N, dask://HOST:PORT, or an executor of Python."""
    plan: bool = False
    """Send nothing; calls and dollars of what would be asked."""

    def __post_init__(self) -> None:
        """Refuse limits of 0 and below, NaN and infinity."""
        for name in ("max_usd", "max_calls", "max_tokens"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                flag = f"--{name.replace('_', '-')}"
                raise ConfigError(f"{flag} {value}: give a number above 0, or leave it out")

    @property
    def limited(self) -> bool:
        """Whether there is any limit."""
        return any((self.max_usd, self.max_calls, self.max_tokens))

    def within(self, workspace: Workspace) -> Spending:
        """Return the same with the workspace's limit of money where it has none of its own."""
        if self.max_usd is not None:
            return self
        return replace(self, max_usd=workspace.config.run.max_usd)


@dataclass(frozen=True)
class JudgeName:
    """A judge as it is named on the command line."""

    name: Any
    """``rules``, a ``[judges]`` or ``[panels]`` entry, a preset, any model; or an async function
    from a case to the text of a reply."""
    model: str | None = None
    """Model of a panel's agents that name none (``--judge-model``)."""
