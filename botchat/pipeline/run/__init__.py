"""What every verb shares: a session of models, a plan, asking, progress, a set read back."""
