"""The reference pages, written from the code."""
