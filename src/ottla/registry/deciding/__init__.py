"""What a request changes. A decision returns records and an answer, and changes nothing itself."""
