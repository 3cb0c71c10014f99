"""The one owner of quirks: what each endpoint refuses, for all stages and models of a run."""

from __future__ import annotations

import logging

import msgspec

from botchat.interfaces import Identity, Quirks
from botchat.workspace.ledger import Ledger, identity_key

log = logging.getLogger("botchat")


class Learnt:
    """Quirks by identity of a model, as the ledger keeps them; they only grow."""

    def __init__(self, ledger: Ledger) -> None:
        """Read each model's when it is first asked for."""
        self._ledger = ledger
        self._known: dict[str, Quirks] = {}

    def of(self, identity: Identity) -> Quirks:
        """Return what is known of a model."""
        key = identity_key(identity)
        if key not in self._known:
            self._known[key] = read_quirks(self._ledger, identity)
        return self._known[key]

    def add(self, name: str, identity: Identity, news: Quirks) -> None:
        """Add what a model's endpoint refused or told; where two differ, the newer one counts.

        What changes the meaning of requests is told once.
        """
        before = self.of(identity)
        known = msgspec.to_builtins(before) | msgspec.to_builtins(news)
        known["parameters"] = before.parameters | news.parameters
        after = msgspec.convert(known, Quirks)
        if after == before:
            return
        self._known[identity_key(identity)] = after
        self._ledger.set_quirks(identity, msgspec.to_builtins(after))
        changes = [change for change in after.changes if change not in before.changes]
        if changes:
            how = " and ".join(changes)
            log.warning(f"{name} is asked {how} from now on: its endpoint refuses otherwise")


def read_quirks(ledger: Ledger, identity: Identity) -> Quirks:
    """Return what the ledger keeps of a model; nothing where that cannot be read."""
    try:
        return msgspec.convert(ledger.quirks(identity), Quirks)
    except msgspec.ValidationError:  # it is learnt again
        return Quirks()
