"""What tests of Ottla, and of programs on it, are written with: real nodes that start in no time and fail on
purpose (`node`, `faults`, the pytest plugin, `unittest_case`), and simulated worlds that run from a seed.

It ships with the package. Nothing that serves imports it.
"""
