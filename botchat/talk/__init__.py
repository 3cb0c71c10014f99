"""The room to talk with models in the browser; a part that can be taken away."""
