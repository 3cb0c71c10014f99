"""Chat models: endpoints and offline bots, behind one ledger."""
