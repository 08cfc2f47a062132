"""What tests of Ottla, and of programs on it, are written with: simulated worlds that run from a seed.

It ships with the package. Nothing that serves imports it.
"""
