"""The command line: flags become one request, its result becomes words."""
