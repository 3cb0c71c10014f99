"""The command line: runs a command, prints its result, and ends with its exit code."""
