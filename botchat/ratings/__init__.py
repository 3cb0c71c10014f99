"""Comparisons in, ratings out: bootstrap Elo and Bradley-Terry, in numpy."""
