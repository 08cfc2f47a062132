"""Does a cluster keep what it promises? A workload that records a history, and a checker that judges it.

The history is plain JSON lines, so any client and any cluster can be judged, not only Ottla's.
"""
