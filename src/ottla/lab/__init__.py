"""The lab: makes each trouble happen on a throw-away node with real clients, then explains it."""
