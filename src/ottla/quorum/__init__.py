"""The metadata quorum: its log, its snapshots, and the controller that decides what is written."""
