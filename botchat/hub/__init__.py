"""Runs on the Hugging Face hub."""
