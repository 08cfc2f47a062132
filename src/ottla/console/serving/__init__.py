"""The web server of the console: sessions, doors, templates and files."""
