"""A world in one process: simulated time, network, disk and workers, all decided by one seed."""
