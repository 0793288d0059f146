"""Base classes and decorators for commands, and the function that runs a command line."""

import inspect
import json
import logging
import os
import re
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
EXIT_FAILED, EXIT_USAGE, EXIT_INTERRUPTED, EXIT_OUTPUT_CLOSED = 1, 2, 130, 141
EXIT_CODES: Mapping[int, str] = {
    0: "Success. A server that is stopped by a signal also exits with 0.",
    EXIT_FAILED: "The command failed, or doctor found a problem. The output shows why and what to do.",
    EXIT_USAGE: "The command line or a setting is not valid. Nothing was done.",
    EXIT_INTERRUPTED: "The command was stopped with Ctrl-C. Finished work is kept.",
    EXIT_OUTPUT_CLOSED: "The program that reads the output closed it early, as `| head` does.",
}
# The commands in each section of the help, in the order in which users need them. Other commands follow at the end.
SECTIONS: Mapping[str, Sequence[str]] = {
    "Get started": ("demo", "install", "doctor", "serve", "uninstall"),
    "Use a memory": ("add", "search", "list", "show", "stats", "ui"),
    "Export, restore, correct and forget": ("export", "import", "backup", "restore", "move", "correct", "forget"),
    "Models": ("organise", "warmup", "reembed", "reconsolidate", "llm-log"),
    "Connect and set up": ("token", "completion", "bundle", "hook", "daemon"),
}
OTHER_COMMANDS = "More"
# These commands are destructive. They are suggested only if the mistyped name is nearly the same.
DESTRUCTIVE = frozenset({"forget", "restore", "uninstall", "revoke"})
_NEARLY_EQUAL = 0.85
# API keys are not options, because other users can see a command line in the list of processes.
NOT_AS_FLAGS = frozenset({"openai_api_key", "embedding_api_key"})
# Words in the messages of tools, and the words that replace them on the command line.
_WORDS_HERE = {
    TELLING_IDS: "list and search",
    "set 'wrong' to true": "use --wrong",
    "set only 'wrong' to true": "use only --wrong",
}
# In the messages of tools, the names of other arguments are in quotes.
_ARGUMENT = re.compile(r"'([a-z_]+)'")
# Words that people try as commands, and what they mean here. None of them runs anything.
OTHER_WORDS: Mapping[str, str] = {
    **dict.fromkeys(("delete", "remove", "rm", "del", "erase", "purge", "clear", "wipe", "reset"), "forget"),
    **dict.fromkeys(("dashboard", "web", "gui", "open", "browse", "browser"), "ui"),
    **dict.fromkeys(("remember", "store", "save", "insert", "write", "new", "put"), "add"),
    **dict.fromkeys(("query", "find", "ask", "recall", "retrieve", "grep"), "search"),
    **dict.fromkeys(("init", "setup", "configure", "connect", "register"), "install"),
    **dict.fromkeys(("start", "run", "server", "mcp"), "serve"),
    **dict.fromkeys(("ls", "pages", "facts", "topics", "memories", "history"), "list"),
    **dict.fromkeys(("get", "view", "cat", "read"), "show"),
    **dict.fromkeys(("edit", "update", "fix", "change", "set"), "correct"),
    **dict.fromkeys(("organize", "consolidate", "process", "index", "learn", "sync", "flush"), "organise"),
    **dict.fromkeys(("status", "info", "profile", "count"), "stats"),
    **dict.fromkeys(("check", "test", "diagnose", "health", "config", "settings"), "doctor"),
    **dict.fromkeys(("dump",), "export"),
    **dict.fromkeys(("load",), "import"),
    **dict.fromkeys(("migrate",), "move"),
    **dict.fromkeys(("download", "pull"), "warmup"),
    **dict.fromkeys(("logs", "log"), "llm-log"),
    **dict.fromkeys(("undo",), "correct ID --restore"),
    **dict.fromkeys(("version",), "--version"),
}
# Settings in the help of every command. A list of all settings would be too long.
SETTINGS_SHOWN = ("user_id", "data_storage_path", "database_url")


class Choice(click.Choice[str]):
    """A parameter type with a fixed set of values. The error for any other value suggests the most similar one."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """Return the error message for an invalid value, with the most similar valid value if there is one."""
        close = nearest_name(str(value), self.choices)
        message = super().get_invalid_choice_message(value, ctx)
        return f"{message} Did you mean {close!r}?" if close else message


class SettingOption(click.Option):
    """An option for one setting, such as ``--user-id``, or for all settings, such as ``--config``."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """Return the allowed values that begin with ``incomplete``.

        If the setting does not have a fixed set of values, return click's own completions.
        """
        texts = _values(self.name) if self.name in Settings.model_fields else ()
        if not texts:
            return super().shell_complete(ctx, incomplete)
        return [CompletionItem(text) for text in texts if text.startswith(incomplete)]


class Command(click.Command):
    """A command whose help lists its options, the most important settings, and examples.

    The most important settings are those in `SETTINGS_SHOWN` and those in the argument ``shown_settings``. Each example
    is a command line with an explanation.
    """

    def __init__(
        self, *args: Any, examples: Sequence[tuple[str, str]] = (), shown_settings: Sequence[str] = (), **more: Any
    ) -> None:
        super().__init__(*args, **more)
        self.examples = examples
        self.shown_settings = (*SETTINGS_SHOWN, *shown_settings)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options and, in a separate section, the settings."""
        parameters = self.get_params(ctx)
        own = [each for each in parameters if not isinstance(each, SettingOption)]
        hidden = Settings.model_fields.keys() - {*self.shown_settings}
        settings = [each for each in parameters if isinstance(each, SettingOption) and each.name not in hidden]
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
        """Run the command.

        An `ArgumentError` from an MCP tool contains the names of the tool's arguments. They are replaced with the names
        of the command's options.
        """
        try:
            return super().invoke(ctx)
        except ArgumentError as error:
            argument = error.argument.partition("[")[0]  # ``ids[0]`` is an item of the argument ``ids``
            named = next((each for each in self.params if each.name == argument), None)
            if named is None:
                raise
            raise ArgumentError(argument=_spelling(named), problem=self._problem_here(error.problem)) from error

    def _problem_here(self, problem: str) -> str:
        """Return ``problem`` with the command's option names instead of the tool's argument names."""
        for word, here in _WORDS_HERE.items():
            problem = problem.replace(word, here)
        spellings = {each.name: _spelling(each) for each in self.params if not isinstance(each, SettingOption)}
        return _ARGUMENT.sub(lambda found: spellings.get(found[1], found[0]), problem)


def _spelling(parameter: click.Parameter) -> str:
    """Return a parameter as users write it, such as ``--time`` or ``TEXT``."""
    is_option = isinstance(parameter, click.Option)
    return parameter.opts[-1] if is_option else parameter.human_readable_name.strip(".[]")


class _OutputClosedError(Exception):
    """The output was closed by the program that reads it.

    This error replaces `BrokenPipeError`, because click would exit with 1 after a `BrokenPipeError`.
    """


@contextmanager
def _detecting_closed_output() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError as error:
        raise _OutputClosedError from error


class Group(click.Group):
    """A group of commands whose help lists them by section. The main help also lists the exit codes."""

    command_class = Command

    def make_context(self, *args: Any, **more: Any) -> click.Context:
        """Parse a command line and return its context.

        Raise `_OutputClosedError` if the output was closed while the help was printed.
        """
        with _detecting_closed_output():
            return super().make_context(*args, **more)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the name of a command, the command, and its arguments.

        For an unknown name, raise an error that suggests commands with the same meaning or with a similar name.
        """
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            name, commands = error.command_name, self.list_commands(ctx)
            words = OTHER_WORDS if self.name == PROGRAM else {}
            nearest = nearest_name(name, [*commands, *words])
            if nearest is not None and nearest in words and _is_nearly(name.lower(), nearest):
                msg = f"There is no command {name!r}. Use: {PROGRAM} {words[nearest]}"
                raise click.UsageError(msg) from None
            near = [each for each in commands if each not in DESTRUCTIVE or _is_nearly(name, each)]
            raise click.NoSuchCommand(name, possibilities=near, ctx=ctx) from None

    def invoke(self, ctx: click.Context) -> Any:
        """Run the chosen command. Raise `_OutputClosedError` if the output was closed."""
        with _detecting_closed_output():
            return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by section, then the options."""
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
        """Write the exit codes if this is the help of the whole program."""
        super().format_epilog(ctx, formatter)
        if self.name == PROGRAM:
            rows = [(str(code), meaning.replace("`", "")) for code, meaning in EXIT_CODES.items()]
            _write_section(formatter, "Exit codes", rows)
            formatter.write_paragraph()
            formatter.write_text(f"{PROGRAM} COMMAND --help shows the options of a command, with examples.")


def _is_nearly(name: str, known: str) -> bool:
    return SequenceMatcher(None, name, known).ratio() >= _NEARLY_EQUAL


json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")


def config_option(command: Callable[..., None]) -> Callable[..., None]:
    """Add the option ``--config`` to a command."""
    return click.option(
        "--config", "config_file", cls=SettingOption, type=click.Path(path_type=Path), metavar="FILE",
        help="A JSON file with settings.",
    )(command)  # fmt: skip


def setting_option(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds an option for the setting ``name`` to a command."""
    return click.option(_flag(name), name, cls=SettingOption, metavar="VALUE", help=_meaning(name))


def settings_options(command: Callable[..., None], *, without: str = "") -> Callable[..., None]:
    """Add options to a command: ``--config``, ``--help-settings``, and one for each setting except API keys.

    ``without`` is the name of a setting that gets no option, because the command has its own option with that name.
    """
    count = sum(name not in NOT_AS_FLAGS for name in Settings.model_fields)
    command = click.option(
        "--help-settings", cls=SettingOption, is_flag=True, is_eager=True, expose_value=False, callback=_show_settings,
        help=f"Show all settings and exit. {count} of them are also options.",
    )(command)  # fmt: skip
    command = config_option(command)
    for name in reversed(Settings.model_fields):
        if name not in NOT_AS_FLAGS and name != without:
            command = setting_option(name)(command)
    return command


def takes_settings(
    *, makes_folder: bool = True, without: str = ""
) -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """Return a decorator for commands whose first argument is the `Settings`.

    The decorator adds an option for each setting. The command may be a coroutine function. For ``without``, see
    `settings_options`; for ``makes_folder``, see `chosen_settings`.
    """

    def decorated(command: Callable[..., Any]) -> Callable[..., None]:
        @wraps(command)
        def with_settings(config_file: Path | None, **given: Any) -> None:
            flags = {name: given.pop(name) for name in Settings.model_fields if name in given}
            called = partial(command, chosen_settings(config_file, flags, makes_folder=makes_folder), **given)
            if inspect.iscoroutinefunction(command):
                anyio.run(called)
            else:
                called()

        return settings_options(with_settings, without=without)

    return decorated


def chosen_settings(
    config_file: Path | None, flags: Mapping[str, Any], *, makes_folder: bool = True, is_server: bool = False
) -> Settings:
    """Return the settings for a command, and start logging to stderr.

    ``flags`` maps the name of each setting to the value of its option, or to None if the option was not used. With
    ``makes_folder``, a missing data folder is created. Only warnings and errors are logged, unless ``is_server`` is
    True or a log level is set.
    """
    settings = load_settings(config_file, flags)
    if makes_folder:
        check_data_folder(settings, may_only_read=True)
    uses_log_level = is_server or "log_level" in settings.model_fields_set
    log_to_stderr(settings.log_level if uses_log_level else "WARNING", settings.log_format)
    return settings


def run(commands: Group, arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command line, and exit with the command's exit code. An error is printed to stderr on one line.

    ``arguments`` does not include the program's name. None means the arguments of this process.
    """
    sys.exit(_exit_code(commands, arguments))


def _exit_code(commands: Group, arguments: Sequence[str] | None) -> int:
    try:
        try:
            code = commands.main(arguments, prog_name=PROGRAM, standalone_mode=False)
        finally:
            _flush()  # without it, a failed write would be reported only when the interpreter exits
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort as error:
        if isinstance(error.__context__, KeyboardInterrupt):
            return _print_error("interrupted", EXIT_INTERRUPTED)
        return EXIT_FAILED  # the command has already printed the reason
    except KeyboardInterrupt:
        return _print_error("interrupted", EXIT_INTERRUPTED)
    except (ConfigError, ArgumentError) as error:
        return _print_error(str(error), EXIT_USAGE)
    except (MemoryOSError, OSError, _OutputClosedError) as error:
        return _failed(error)
    except Exception as error:
        logger.debug("unexpected", exc_info=True)
        frame = extract_tb(error.__traceback__)[-1]
        where = f"{Path(frame.filename).name}, line {frame.lineno}"
        return _print_error(
            f"unexpected {type(error).__name__} in {where}: this is a bug in {PROGRAM}; report it with this line"
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


def _failed(error: MemoryOSError | OSError | _OutputClosedError) -> int:
    if isinstance(error, BrokenPipeError) or isinstance(error.__cause__, BrokenPipeError):
        _discard_stdout()
        return EXIT_OUTPUT_CLOSED
    if isinstance(error, OSError):
        _discard_stdout()
        where = f"{error.filename}: " if error.filename else "reading or writing failed: "
        return _print_error(f"{where}{error.strerror or type(error).__name__}")
    return _print_error(str(error))


def _discard_stdout() -> None:
    """Redirect a broken stdout to the null device. Otherwise, the interpreter's flush at exit would fail."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_error(message: str, code: int = EXIT_FAILED) -> int:
    from memoryos_mcp.cli.terminal import plain  # imported late because its imports are slow

    click.echo(f"{PROGRAM}: {plain(message)}", err=True)
    return code


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _meaning(name: str) -> str:
    return str(Settings.model_fields[name].description).replace("`", "")


def _values(name: str) -> tuple[str, ...]:
    """Return the allowed values of a setting, or an empty tuple if the setting has no fixed set of values."""
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


def _show_settings(ctx: click.Context, _: click.Parameter, is_used: bool) -> None:
    """Print all settings with their allowed values, and exit."""
    if not is_used or ctx.resilient_parsing:
        return
    formatter = ctx.make_formatter()
    formatter.write_text(
        "Every setting can be set in the config file or in an environment variable (MEMORYOS_ and the name in "
        "capitals). All settings except API keys are also options. Environment variables override the file, and "
        "options override both."
    )
    rows = []
    for name, field in sorted(Settings.model_fields.items(), key=lambda item: item[0] in HttpSettings.model_fields):
        values = describe_values(name)
        has_default = field.default_factory is None and field.default not in (None, "", [])
        default = f"; default {json.dumps(field.default)}" if has_default else ""
        text = f"{_meaning(name)} {values[0].upper()}{values[1:]}{default}."
        rows.append((_flag(name) if name not in NOT_AS_FLAGS else name, text))
    _write_section(formatter, "Settings", rows)
    click.echo(formatter.getvalue().rstrip("\n"), color=ctx.color)
    ctx.exit()
