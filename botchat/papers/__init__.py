"""The papers' own tables and benchmarks of judges; a part that can be taken away."""
