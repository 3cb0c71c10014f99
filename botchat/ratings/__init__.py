"""Comparisons in, ratings out: bootstrap Elo, Bradley-Terry and the adaptive Arena, in numpy."""
