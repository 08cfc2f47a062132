"""The commands that explain: `lag` and its neighbours."""
