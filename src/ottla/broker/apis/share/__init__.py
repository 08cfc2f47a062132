"""Share groups: what members, administrators and brokers ask about them (KIP-932)."""
