"""The records that coordinators keep in internal topics, by subject. `api_key` is the key type."""
