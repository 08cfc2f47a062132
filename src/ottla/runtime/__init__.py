"""The real world: event loop, sockets, files, clock, signals, threads. Everything below is pure."""
