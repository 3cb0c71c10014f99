"""Runs whose calls are made by workers elsewhere; a part that can be taken away."""
