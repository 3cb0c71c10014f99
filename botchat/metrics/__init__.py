"""Statistics, intervals and agreement of judges; lengths, criteria and faults of texts."""
