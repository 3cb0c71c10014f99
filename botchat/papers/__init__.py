"""The papers' own tables and benchmarks of judges."""
