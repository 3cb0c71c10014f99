"""Models behind an HTTP endpoint that speaks OpenAI's chat completions."""
