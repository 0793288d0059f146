"""The command ``memoryos-mcp llm-log``: show the LLM requests for a user, and the LLM's replies.

The log can be large, so it is read line by line.
"""

from collections import deque
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import click
from pydantic import ValidationError
from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from memoryos_mcp.cli.terminal import make_console, plain, prepare_stdout
from memoryos_mcp.config import Settings
from memoryos_mcp.errors import StorageError
from memoryos_mcp.llm.log_lines import LogLine
from memoryos_mcp.llm.recording import LOG_NAME
from memoryos_mcp.text.user_ids import user_folder


def show_llm_log(settings: Settings, *, last: int, number: int | None, as_json: bool) -> None:
    """List the last calls in the configured user's log, or print one call in full.

    ``last`` is the number of calls to list. ``number`` is the line number of the call to print in full. The first line
    of the log has the number 1. If ``number`` is None, the calls are listed.
    """
    prepare_stdout()
    path = user_folder(settings.data_storage_path, settings.user_id) / LOG_NAME
    lines = _chosen(path, last, number)
    if not lines:
        click.echo(_nothing_logged(settings, path), err=as_json)
    elif as_json:
        for _, raw in lines:
            click.echo(raw)
    elif number is None:
        _print_table(lines, settings)
    else:
        _print_call(number, lines[0][1], settings)


def _chosen(path: Path, last: int, number: int | None) -> list[tuple[int, bytes]]:
    """Return the last lines of a log, or only the line with a given number. Each item is a line number and a line.

    If ``number`` is None, return up to ``last`` lines, or an empty list if the log does not exist. Otherwise, return
    only the line ``number``, and raise `click.BadParameter` if this line does not exist.
    """
    lines: list[tuple[int, bytes]] = []
    try:
        with path.open("rb") as file:
            numbered = ((at, raw.rstrip(b"\r\n")) for at, raw in enumerate(islice(file, number), 1) if raw.strip())
            lines = list(deque((line for line in numbered if number in (None, line[0])), maxlen=last))
    except FileNotFoundError:
        pass
    except OSError as error:
        msg = f"{path} cannot be read ({error.strerror}); make the file readable by this account"
        raise StorageError(msg) from error
    if number is not None and not lines:
        msg = f"no call has the number {number}; run memoryos-mcp llm-log without --show to see the numbers"
        raise click.BadParameter(msg, param_hint="'--show'")
    return lines


def _read(raw: bytes) -> LogLine | None:
    """Return the parsed line, or None if it is damaged."""
    try:
        return LogLine.model_validate_json(raw)
    except ValidationError:
        return None


def _nothing_logged(settings: Settings, path: Path) -> str:
    if settings.llm_log:
        return f"llm_log is true, but no request to the LLM was logged for this user yet: {path} is empty or missing."
    return (
        f"There is no log: {path} is empty or missing. To log requests to the LLM, set llm_log to true: "
        '"llm_log": true in the config file, MEMORYOS_LLM_LOG=true, or serve --llm-log true.'
    )


def _print_table(lines: Iterable[tuple[int, bytes]], settings: Settings) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("#", "time", "purpose"):
        table.add_column(title, no_wrap=True)
    for title in ("prompt", "reply", "ms"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("result", overflow="fold")
    for number, raw in lines:
        line = _read(raw)
        if line is None:
            table.add_row(str(number), "", "", "", "", "", Text("unreadable line", style="red"))
            continue
        prompt_tokens, reply_tokens = _tokens(line)
        time = _time(line, settings)
        table.add_row(
            str(number), time, _plain(line.purpose), prompt_tokens, reply_tokens, str(line.took_ms), _result(line)
        )
    make_console().print(table)


def _print_call(number: int, raw: bytes, settings: Settings) -> None:
    console = make_console()
    line = _read(raw)
    if line is None:
        console.print(Text(f"Line {number} of the log is damaged and cannot be shown."))
        return
    prompt_tokens, reply_tokens = _tokens(line)
    request = line.request
    form = request.response_format.json_schema.name if request.response_format else "none"
    about = (
        f"Call {number}, {_time(line, settings)}: {line.purpose}, form {form}, "
        f"model {request.model}, {line.took_ms} ms, tokens {prompt_tokens or '?'} + {reply_tokens or '?'}"
    )
    console.print(_plain(about), soft_wrap=True)
    for message in request.messages:
        _print_part(console, message.role, message.content or "")
    completion = line.completion
    if completion is None:
        _print_part(console, "error", _failure(line))
    else:
        is_cut = completion.choices[0].finish_reason == "length"
        title = "reply, cut off at the token limit" if is_cut else "reply"
        _print_part(console, title, completion.choices[0].message.content or "")


def _print_part(console: Console, title: str, text: str) -> None:
    console.print(Rule(_plain(title), align="left"))
    console.print(_plain(text), soft_wrap=True)


def _plain(text: str) -> Text:
    """Convert a string to a Rich `Text`. Markup and escape sequences in the string have no effect."""
    return Text(plain(text))


def _time(line: LogLine, settings: Settings) -> str:
    return line.at.astimezone(settings.zone).strftime("%Y-%m-%d %H:%M:%S")


def _tokens(line: LogLine) -> tuple[str, str]:
    """Return the number of prompt tokens and the number of reply tokens, or empty strings if they are unknown."""
    usage = line.completion.usage if line.completion is not None else None
    return ("", "") if usage is None else (str(usage.prompt_tokens), str(usage.completion_tokens))


def _result(line: LogLine) -> Text:
    if line.completion is None:
        return Text(plain(_failure(line)), style="red")
    return Text("cut", style="yellow") if line.completion.choices[0].finish_reason == "length" else Text("ok")


def _failure(line: LogLine) -> str:
    if line.error is not None:
        return f"error: {line.error.message or line.error.code or 'unknown'}"
    return f"error: status {line.response.status_code}" if line.response is not None else "error: no response"
