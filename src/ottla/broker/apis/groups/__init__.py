"""Groups, their members and their offsets."""
