"""What the controller decides, by subject. Deciding changes nothing: the records it returns do, by replay."""
