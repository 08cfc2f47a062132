"""Commands about schemas."""
