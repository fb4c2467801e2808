"""How `--help` looks: at the terminal's own width, options in groups, and examples that run as they stand (cli/examples.py)."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup

from samzapy.cli.examples import EXAMPLES

OF_THE_JOB_FILE = ("more", "sets")
WIDEST = 200
WHOLE = 10_000  # characters: no summary is shortened
CONTEXT: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": WIDEST}


class Command(TyperCommand):
    """A command, with its help."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        arguments = [param for param in self.get_params(ctx) if param.param_type_name == "argument"]
        return ["[OPTIONS]", *(f"{_name(a) if a.required else f'[{_name(a)}]'}{'...' if a.nargs == -1 else ''}" for a in arguments)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": [], "Changes to the job file": []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                is_argument = param.param_type_name == "argument"
                name = "Arguments" if is_argument else "Changes to the job file" if param.name in OF_THE_JOB_FILE else "Options"
                groups[name].append((_name(param), record[1].removesuffix("[required]").rstrip()) if is_argument else record)
        for name, records in groups.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        program = ctx.find_root().command_path  # which may have several words: python -m samzapy
        examples = EXAMPLES.get(ctx.command_path.removeprefix(program).strip(), ())
        if examples:
            with formatter.section("Examples"):
                for example in examples:
                    formatter.write(f"{' ' * formatter.current_indent}{example}\n")


class Family(TyperGroup):
    """Commands that share their first word, each with all of its first sentence."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.commands[name].get_short_help_str(WHOLE)) for name in self.list_commands(ctx)])


def _name(argument: Any) -> str:
    return str(argument.metavar or argument.name).strip("[].")


def with_help(app: Any) -> None:
    """Give all commands of a family this help."""
    for command in app.registered_commands:
        command.cls = Command
    for group in app.registered_groups:
        group.cls = Family
        with_help(group.typer_instance)
