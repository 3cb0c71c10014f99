"""Runs on the Hugging Face hub, records of Every Eval Ever; a part that can be taken away."""
