"""Page, chunks and figures of a board; no file is read or written but those of the package."""
