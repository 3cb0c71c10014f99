"""Benchmarks of judges, and the papers' printed tables and figures."""
