"""Local weights through transformers."""
