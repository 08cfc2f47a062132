"""What handlers of several APIs have in common."""
