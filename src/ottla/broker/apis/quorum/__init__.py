"""The quorum that agrees on the metadata."""
