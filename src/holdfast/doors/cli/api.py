"""`holdfast api`: the earlier systems' functions, for shell scripts."""

from typing import Annotated

import typer

MORE = {"ignore_unknown_options": True, "allow_extra_args": True}


def register(app: typer.Typer) -> None:
    app.command(context_settings=MORE)(api)


def api(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="The function; without one all are listed.")] = "",
) -> None:
    """Call a function of `holdfast.api` by its name. Arguments follow; objects and lists as JSON."""
    import holdfast.api
    from holdfast.api import shell

    if not name:
        print("\n".join(holdfast.api.FUNCTIONS))
        raise typer.Exit
    raise typer.Exit(shell.main([name, *context.args], holdfast.api.FUNCTIONS))
