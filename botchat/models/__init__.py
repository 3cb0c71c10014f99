"""Who speaks: endpoints and offline bots, behind one ledger."""
