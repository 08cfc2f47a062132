"""`ottla completion`: shells complete commands and options."""

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
def completion(shell: str) -> None:
    """Print the completion script for SHELL.

    \b
    bash:  ottla completion bash >> ~/.bashrc
    zsh:   ottla completion zsh  >> ~/.zshrc
    fish:  ottla completion fish > ~/.config/fish/completions/ottla.fish
    """
    from ottla.cli.main import main

    kind = get_completion_class(shell)
    assert kind is not None, "click completes all three"
    click.echo(kind(main, {}, "ottla", "_OTTLA_COMPLETE").source())
