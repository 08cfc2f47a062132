"""One handler file for each API, named after it. A file that is here is an API that is advertised."""
