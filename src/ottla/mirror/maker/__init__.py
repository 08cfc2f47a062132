"""MirrorMaker 2's way: remote topics by its names, its own topics in its formats, translated offsets."""
