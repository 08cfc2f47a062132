"""Functions compiled for each message and version: to read it, to write it, and to find its errors."""
