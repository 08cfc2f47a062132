"""How a command fails: one clear sentence on stderr that says what to do next, and exit code 1."""

import click


class Failure(click.ClickException):
    """Something did not work."""

    exit_code = 1

    def format_message(self) -> str:
        """Return the sentence. Names in it may be a stranger's."""
        from ottla.model.shown import harmless

        return harmless(self.message)
