"""The click that typer is built on: newer versions of typer bring their own copy of it, older ones import `click`."""

from importlib import import_module
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from typer._click import ClickException, Command, Context, HelpFormatter, Parameter
    from typer._click.shell_completion import CompletionItem
    from typer.core import TyperGroup as Group
else:
    ClickException = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")
    _package = ClickException.__module__.rpartition(".")[0]
    _core = import_module(f"{_package}.core")
    Command, Context, Group, Parameter = _core.Command, _core.Context, typer.core.TyperGroup, _core.Parameter
    HelpFormatter = import_module(f"{_package}.formatting").HelpFormatter
    CompletionItem = import_module(f"{_package}.shell_completion").CompletionItem

__all__ = ["ClickException", "Command", "CompletionItem", "Context", "Group", "HelpFormatter", "Parameter"]
