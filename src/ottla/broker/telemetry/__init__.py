"""Client telemetry (KIP-714): clients push their metrics, and the node shows them with its own."""
