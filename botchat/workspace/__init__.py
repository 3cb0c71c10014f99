"""Everything that is on disk: the folder, its stage files, the ledger, settings and the lock."""
