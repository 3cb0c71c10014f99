"""Tables of one judge on one seed set, and their files' contents; no file is read or written."""
