"""`ottla export`, `ottla plan` and `ottla apply`: what a cluster is to be, as one file."""
