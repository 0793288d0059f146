"""Behaviour of the command line: help in sections, settings as options, and exit codes."""

import inspect
import json
import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from difflib import SequenceMatcher
from functools import partial, wraps
from pathlib import Path
from traceback import extract_tb
from typing import Any, Literal, NoReturn

import anyio
import click
from click.shell_completion import CompletionItem

from memoryos_mcp.config import Settings
from memoryos_mcp.config.http import HttpSettings
from memoryos_mcp.config.logs import log_to_stderr
from memoryos_mcp.config.problems import nearest_name
from memoryos_mcp.config.sources import check_data_folder, load_settings
from memoryos_mcp.config.values import allowed_texts, describe_values, value_type
from memoryos_mcp.errors import ArgumentError, ConfigError, MemoryOSError
from memoryos_mcp.model.ids import TELLING_IDS

logger = logging.getLogger(__name__)

PROGRAM = "memoryos-mcp"
EXIT_FAILED, EXIT_USAGE, EXIT_INTERRUPTED, EXIT_UNREAD = 1, 2, 130, 141
EXIT_CODES: Mapping[int, str] = {
    0: "Done. A server that was told to stop ends with it too.",
    EXIT_FAILED: "It failed, or a check of doctor did; stderr says why and what to do.",
    EXIT_USAGE: "The command line or a setting cannot be used; nothing was done.",
    EXIT_INTERRUPTED: "Stopped with Ctrl-C; what was done stays done.",
    EXIT_UNREAD: "The output was no longer read, as with `| head`.",
}
# In the order in which people need them; a command that is missing here is listed at the end.
SECTIONS: Mapping[str, Sequence[str]] = {
    "Begin": ("demo", "install", "doctor", "serve", "uninstall"),
    "Look into a memory": ("stats", "search", "show"),
    "Take it along, put it back, correct, forget": ("export", "import", "backup", "restore", "correct", "forget"),
    "Models": ("warmup", "reembed", "reconsolidate", "llm-log"),
    "Connect and set up": ("token", "completion", "bundle"),
}
OTHER_COMMANDS = "More"
# Destructive commands, which are suggested only for a nearly equal name.
DESTRUCTIVE = frozenset({"forget", "restore", "uninstall", "revoke"})
_TYPED_SHARE = 0.85
# A key on a command line is visible in every list of processes.
NOT_AS_FLAGS = frozenset({"openai_api_key", "embedding_api_key"})
# What messages about a tool's arguments name, and its name on the command line.
_WORDS_HERE = {TELLING_IDS: "stats and search", "wrong: true": "--wrong"}
# Settings that every command shows in its help; the others would bury its own options.
SETTINGS_SHOWN = ("user_id", "data_storage_path")


class Choice(click.Choice[str]):
    """One of a few words. The error for a mistyped one suggests the nearest."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """Return the error for a word, with the nearest valid one."""
        close = nearest_name(str(value), self.choices)
        told = super().get_invalid_choice_message(value, ctx)
        return f"{told} Did you mean {close!r}?" if close else told


class SettingOption(click.Option):
    """An option for a setting, or one about settings."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """Return the possible values of a setting that has only a few."""
        texts = _values(self.name) if self.name in Settings.model_fields else ()
        if not texts:
            return super().shell_complete(ctx, incomplete)
        return [CompletionItem(text) for text in texts if text.startswith(incomplete)]


class Command(click.Command):
    """A command whose help shows its own options first, then the most important settings, then examples.

    Args:
        examples: Command lines, each with its explanation.
        shown_settings: Settings in the help, in addition to SETTINGS_SHOWN.
    """

    def __init__(
        self,
        *args: Any,
        examples: Sequence[tuple[str, str]] = (),
        shown_settings: Sequence[str] = (),
        **more: Any,
    ) -> None:
        super().__init__(*args, **more)
        self.examples = examples
        self.shown_settings = (*SETTINGS_SHOWN, *shown_settings)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, then the settings in their own section."""
        parameters = self.get_params(ctx)
        own = [each for each in parameters if not isinstance(each, SettingOption)]
        settings = [each for each in parameters if isinstance(each, SettingOption) and self._is_shown(each)]
        _write_section(formatter, "Options", _records(own, ctx))
        _write_section(formatter, "Settings", _records(settings, ctx))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        super().format_epilog(ctx, formatter)
        if self.examples:
            with formatter.section("Examples"):
                for line, meaning in self.examples:
                    formatter.write_text(f"# {meaning}")
                    formatter.write(f"{'':>{formatter.current_indent}}{line}\n")

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error about an argument names it as the command line does."""
        try:
            return super().invoke(ctx)
        except ArgumentError as error:
            argument = error.argument.partition("[")[0]  # without a place in a list
            named = next((each for each in self.params if each.name == argument), None)
            if named is None:
                raise
            name = named.opts[-1] if isinstance(named, click.Option) else named.human_readable_name.strip(".")
            problem = error.problem
            for word, here in _WORDS_HERE.items():
                problem = problem.replace(word, here)
            raise ArgumentError(argument=name, problem=problem) from error

    def _is_shown(self, option: SettingOption) -> bool:
        return option.name not in Settings.model_fields or option.name in self.shown_settings


class _UnreadError(Exception):
    """Nobody reads the output any more. Click would treat the system's own error as a failure."""


@contextmanager
def _watching_the_reader() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError as error:
        raise _UnreadError from error


class Group(click.Group):
    """Commands, listed in sections, with the exit codes at the end of the help."""

    command_class = Command

    def make_context(self, *args: Any, **more: Any) -> click.Context:
        """Return the context of a command line. Help is printed here."""
        with _watching_the_reader():
            return super().make_context(*args, **more)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the named command. The error for an unknown name suggests near ones, but rarely a destructive one."""
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            name = error.command_name
            near = [
                each
                for each in self.list_commands(ctx)
                if each not in DESTRUCTIVE or SequenceMatcher(None, name, each).ratio() >= _TYPED_SHARE
            ]
            raise click.NoSuchCommand(name, possibilities=near, ctx=ctx) from None

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        with _watching_the_reader():
            return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands before the options, because readers look for commands."""
        left = [name for name in self.list_commands(ctx) if not self.commands[name].hidden]
        widest = max(map(len, left))
        width = formatter.width - 6 - widest
        sections = {**SECTIONS, OTHER_COMMANDS: left} if self.name == PROGRAM else {"Commands": left}
        for title, names in sections.items():
            here = [name for name in names if name in left]
            left = [name for name in left if name not in here]
            _write_section(
                formatter, title, [(name.ljust(widest), self.commands[name].get_short_help_str(width)) for name in here]
            )
        _write_section(formatter, "Options", _records(self.get_params(ctx), ctx))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the exit codes."""
        super().format_epilog(ctx, formatter)
        if self.name == PROGRAM:
            rows = [(str(code), meaning.replace("`", "")) for code, meaning in EXIT_CODES.items()]
            _write_section(formatter, "Exit codes", rows)
            formatter.write_paragraph()
            formatter.write_text(f"{PROGRAM} COMMAND --help shows the options of a command, with examples.")


json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


def config_option(command: Callable[..., None]) -> Callable[..., None]:
    """Add the option ``--config`` to a command."""
    return click.option(
        "--config", "config_file", cls=SettingOption, type=click.Path(path_type=Path), metavar="FILE",
        help="A config.json with settings.",
    )(command)  # fmt: skip


def setting_option(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds the option of a setting to a command."""
    return click.option(_flag(name), name, cls=SettingOption, metavar="VALUE", help=_meaning(name))


def settings_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add ``--config``, ``--help-settings`` and an option for every setting that is not secret to a command."""
    count = sum(name not in NOT_AS_FLAGS for name in Settings.model_fields)
    command = click.option(
        "--help-settings", cls=SettingOption, is_flag=True, is_eager=True, expose_value=False, callback=_show_settings,
        help=f"Show all {count} settings, which are options too, and exit.",
    )(command)  # fmt: skip
    command = config_option(command)
    for name in reversed(Settings.model_fields):
        if name not in NOT_AS_FLAGS:
            command = setting_option(name)(command)
    return command


def takes_settings(*, makes_folder: bool = True) -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """Return a decorator that adds the options of `settings_options` to a command and passes it the chosen settings.

    A command may be a coroutine function. ``makes_folder`` is that of `chosen_settings`.
    """

    def decorated(command: Callable[..., Any]) -> Callable[..., None]:
        @settings_options
        @wraps(command)
        def with_settings(config_file: Path | None, **given: Any) -> None:
            flags = {name: given.pop(name) for name in Settings.model_fields if name in given}
            called = partial(command, chosen_settings(config_file, flags, makes_folder=makes_folder), **given)
            if inspect.iscoroutinefunction(command):
                anyio.run(called)
            else:
                called()

        return with_settings

    return decorated


def chosen_settings(
    config_file: Path | None, flags: Mapping[str, Any], *, makes_folder: bool = True, is_server: bool = False
) -> Settings:
    """Return a command's settings, and set up logging to stderr by them.

    Args:
        config_file: The value of ``--config``.
        flags: Settings by name; None means not given.
        makes_folder: Whether to create the data folder and check that it is writable; reading needs neither.
        is_server: Whether the default log level applies; other commands log only warnings unless a level is set.
    """
    settings = load_settings(config_file, {name: value for name, value in flags.items() if value is not None})
    if makes_folder:
        check_data_folder(settings, may_only_read=True)
    is_asked_for = is_server or "log_level" in settings.model_fields_set
    log_to_stderr(settings.log_level if is_asked_for else "WARNING", settings.log_format)
    return settings


def run(commands: Group, arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line, print an error on stderr in one line, and exit with its code.

    The arguments do not include the program's name; None means this process's arguments.
    """
    sys.exit(_exit_code(commands, arguments))


def _exit_code(commands: Group, arguments: Sequence[str] | None) -> int:
    try:
        try:
            code = commands.main(arguments, prog_name=PROGRAM, standalone_mode=False)
        finally:
            _flush()  # a failed write is reported here, not at the interpreter's exit
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort as error:
        if isinstance(error.__context__, KeyboardInterrupt):
            return _told("interrupted", EXIT_INTERRUPTED)
        return EXIT_FAILED  # the command has printed the reason
    except KeyboardInterrupt:
        return _told("interrupted", EXIT_INTERRUPTED)
    except (ConfigError, ArgumentError) as error:
        return _told(str(error), EXIT_USAGE)
    except (MemoryOSError, OSError, _UnreadError) as error:
        return _failed(error)
    except Exception as error:
        logger.debug("unexpected", exc_info=True)
        frame = extract_tb(error.__traceback__)[-1]
        where = f"{Path(frame.filename).name}, line {frame.lineno}"
        return _told(
            f"unexpected {type(error).__name__} in {where}: a defect of this program; report it with this line"
        )
    return code if isinstance(code, int) else 0


def _flush() -> None:
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except OSError as error:
        error.filename = error.filename or "stdout"
        raise


def _failed(error: MemoryOSError | OSError | _UnreadError) -> int:
    if isinstance(error, BrokenPipeError) or isinstance(error.__cause__, BrokenPipeError):
        _let_stdout_go()
        return EXIT_UNREAD
    if isinstance(error, OSError):
        _let_stdout_go()
        where = f"{error.filename}: " if error.filename else "reading or writing failed: "
        return _told(f"{where}{error.strerror or type(error).__name__}")
    return _told(str(error))


def _let_stdout_go() -> None:
    """Redirect a broken stdout to nothing; otherwise the interpreter would try again and complain."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _told(message: str, code: int = EXIT_FAILED) -> int:
    from memoryos_mcp.cli.terminal import plain  # its imports are slow

    click.echo(f"{PROGRAM}: {plain(message)}", err=True)
    return code


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _meaning(name: str) -> str:
    return str(Settings.model_fields[name].description).replace("`", "")


def _values(name: str) -> tuple[str, ...]:
    """Return the values of a setting that has only a few."""
    kind = value_type(name)
    if kind is Literal:
        return allowed_texts(name)
    return ("true", "false") if kind is bool else ()


def _records(parameters: Sequence[click.Parameter], ctx: click.Context) -> list[tuple[str, str]]:
    records = (each.get_help_record(ctx) for each in parameters)
    return [(name, meaning) for name, meaning in filter(None, records) if meaning]


def _write_section(formatter: click.HelpFormatter, title: str, rows: Sequence[tuple[str, str]]) -> None:
    if rows:
        with formatter.section(title):
            formatter.write_dl(rows)


def _show_settings(ctx: click.Context, _: click.Parameter, is_asked: bool) -> None:
    """Print every setting, where it can be set and its possible values, and exit."""
    if not is_asked or ctx.resilient_parsing:
        return
    formatter = ctx.make_formatter()
    formatter.write_text(
        "Every setting is a key of the config file, an environment variable (MEMORYOS_ and its name in capitals) and, "
        "except for API keys, an option; later ones win."
    )
    rows = []
    for name, field in sorted(Settings.model_fields.items(), key=lambda item: item[0] in HttpSettings.model_fields):
        may_be = describe_values(name)
        has_default = field.default_factory is None and field.default not in (None, "", [])
        default = f"; default {json.dumps(field.default)}" if has_default else ""
        told = f"{_meaning(name)} {may_be[0].upper()}{may_be[1:]}{default}."
        rows.append((_flag(name) if name not in NOT_AS_FLAGS else name, told))
    _write_section(formatter, "Settings", rows)
    click.echo(formatter.getvalue().rstrip("\n"), color=ctx.color)
    ctx.exit()
