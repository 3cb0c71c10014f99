"""The tables of one judge on one seed set; nothing here reads or writes a file."""
