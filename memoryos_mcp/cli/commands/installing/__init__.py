"""The commands ``memoryos-mcp install`` and ``uninstall``: change the configuration files of MCP clients."""

import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import click

from memoryos_mcp.cli.commands.installing.outcomes import ALL, Outcome, Request, masked, print_outcomes, shown_change
from memoryos_mcp.cli.installer import claude_code, entries, files, hooks, planning, rules
from memoryos_mcp.cli.installer.catalogue import CLIENTS, Client
from memoryos_mcp.cli.installer.entries import Local, Remote
from memoryos_mcp.cli.installer.places import Location, Machine, locations_of
from memoryos_mcp.cli.installer.planning import Action
from memoryos_mcp.cli.terminal import note, print_report
from memoryos_mcp.config import Settings
from memoryos_mcp.config.http import LOOPBACK
from memoryos_mcp.config.sources import load_settings
from memoryos_mcp.errors import ArgumentError, ClientFileError, MemoryOSError
from memoryos_mcp.model.pages import utc_now

MCP_PATH = "/mcp"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}")


def local_server(
    config_file: Path | None, user_id: str | None, data_folder: str | None, database_url: str | None = None
) -> Local:
    """Return the command line with which a client starts the server of this installation.

    Each argument that is not None becomes an option of the command line, such as ``--user-id``.

    Raises:
        ArgumentError: The address of the database contains a password.
        ConfigError: A setting is not valid.
    """
    given = {"user_id": user_id, "data_storage_path": data_folder, "database_url": database_url}
    settings = load_settings(config_file, given)
    args = ["serve"]
    if config_file is not None:
        args += ["--config", str(config_file.expanduser().absolute())]
    if user_id is not None:
        args += ["--user-id", settings.user_id]
    if data_folder is not None:
        args += ["--data-storage-path", str(settings.data_storage_path.absolute())]
    if database_url is not None and settings.database_url is not None:
        args += ["--database-url", _without_password(settings.database_url.get_secret_value())]
    command = entries.this_command()
    return Local(command[0], (*command[1:], *args))


def _without_password(url: str) -> str:
    """Return the address of a database unchanged. Raise `ArgumentError` if it contains a password."""
    parts = urlsplit(url)
    if parts.password or "password=" in parts.query:
        problem = (
            "the address contains a password, which the client's file would show; put database_url in a config file, "
            "and pass the config file with --config"
        )
        raise ArgumentError(argument="--database-url", problem=problem)
    return url


def remote_server(url: str, token: str | None, token_variable: str | None) -> Remote:
    """Return the address and the token of a running server. If ``url`` has no path, `MCP_PATH` is added.

    ``token_variable`` is the name of an environment variable that contains the token. Without ``token`` and
    ``token_variable``, clients send no token.

    Raises:
        ArgumentError: Both ``token`` and ``token_variable`` are given, or a value is not valid.
    """
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_usable = False
    if not is_usable or re.search(r"[\s\x00-\x1f\"'\\]", url):
        raise ArgumentError(
            argument="--http", problem="the address is not valid; use an address like http://127.0.0.1:8000/mcp"
        )
    if parts.username or parts.password:
        raise ArgumentError(
            argument="--http", problem="the address contains a user name or a password; remove these and use --token"
        )
    if token is not None and token_variable is not None:
        raise ArgumentError(
            argument="--token-variable", problem="this option cannot be combined with --token; use only one of them"
        )
    if token is not None and not re.fullmatch(r"[\x21-\x7e]+", token):
        raise ArgumentError(
            argument="--token",
            problem="the token is blank or contains invalid characters; pass a token from `memoryos-mcp token add`",
        )
    if token_variable is not None and not re.fullmatch(r"[A-Za-z_]\w*", token_variable, re.ASCII):
        problem = "this is not a valid name of an environment variable; use a name like MEMORY_TOKEN"
        raise ArgumentError(argument="--token-variable", problem=problem)
    path = parts.path if parts.path.strip("/") else MCP_PATH
    return Remote(urlunsplit(parts._replace(path=path)), token, token_variable)


def server_of(
    url: str | None,
    token: str | None,
    token_variable: str | None,
    config_file: Path | None,
    user_id: str | None,
    data_folder: str | None,
    database_url: str | None = None,
) -> Local | Remote:
    """Return the server at ``url``, or the server of this installation if ``url`` is None."""
    if url is not None:
        if config_file or user_id or data_folder or database_url:
            problem = (
                "this option cannot be combined with --config, --user-id, --data-storage-path or --database-url, "
                "because a running server has its own settings; omit these options"
            )
            raise ArgumentError(argument="--http", problem=problem)
        return remote_server(url, _token(token), token_variable)
    if token is not None or token_variable is not None:
        problem = "this option can only be used with --http; add --http URL, or omit this option"
        raise ArgumentError(argument="--token" if token is not None else "--token-variable", problem=problem)
    return local_server(config_file, user_id, data_folder, database_url)


def _token(given: str | None) -> str | None:
    """Return the token in ``given``, or None if ``given`` is None. If ``given`` is ``-``, read the token from stdin.

    If stdin is a terminal, a prompt asks for the token without showing the input. Otherwise, one line is read.
    """
    if given is None:
        return None
    if given == "-":
        if sys.stdin.isatty():
            return str(click.prompt("Token", hide_input=True, err=True)).strip()
        return sys.stdin.readline().strip()
    note(
        "other accounts on this machine can read a token on a command line; "
        "use --token - to enter the token at a prompt"
    )
    return given


def change_clients(request: Request, server: Local | Remote | None) -> bool:
    """Add a server to the configuration files of clients, and print the outcomes. Return True if all changes succeeded.

    If ``server`` is None, remove the entry ``request.name`` from these files instead.
    """
    check_name(request.name)
    outcomes = list(_outcomes(request, server, Machine.this()))
    return print_outcomes(request, outcomes, [] if server is None else list(_cautions(request, server)))


def list_clients(command: str, *, as_json: bool) -> None:
    """Print the clients on this machine, and whether the configuration file of each client contains the server.

    Also print how to use ``command``, which is ``install`` or ``uninstall``, to change a file.
    """
    states = [(each, _state(each)) for each in clients_here(Machine.this())]
    clients = [{"client": each.client.name, "file": str(each.file), "state": state} for each, state in states]
    lines = [f"{each.client.name:<15}  {state:<15}  {each.file}" for each, state in states]
    lines += [] if states else ["No MCP client was found on this machine."]
    if states and command == "install" and all(state == "added" for _, state in states):
        lines.append(
            "The server is in all of these files. To check whether it can be started, run memoryos-mcp doctor."
        )
    else:
        lines.append(
            f"To change a client, run memoryos-mcp {command} --client NAME, or --client all for all of these clients."
        )
    lines.append(f"Supported clients: {', '.join(CLIENTS)}.")
    print_report({"clients": clients, "known": list(CLIENTS)}, lines, as_json=as_json)


def client_states() -> list[tuple[str, str]]:
    """Return the title and the state of each client on this machine.

    The state, such as ``not added``, says whether the client's configuration file contains the server.

    Raises:
        ClientFileError: The account has no home folder, or the current working folder no longer exists.
    """
    return [(each.client.title, _state(each)) for each in clients_here(Machine.this())]


def clients_here(machine: Machine) -> list[Location]:
    """Return the location of the user's configuration file for each client that is installed on ``machine``."""
    return [
        location
        for client in CLIENTS.values()
        for location in locations_of(client, "user", machine)
        if location.is_client_there
    ]


def _state(location: Location) -> str:
    try:
        present = planning.entries_of(location.client, files.read(location.file)).get(entries.NAME)
    except ClientFileError:
        return "unreadable"
    if present is None:
        return "not added"
    return "added" if entries.kind_of(location.client, present) is entries.Kind.OURS else "another's entry"


def check_name(name: str) -> None:
    """Raise `ArgumentError` if any client could reject ``name`` as the name of a server."""
    if not _NAME.fullmatch(name):
        problem = "a name has at most 32 letters, digits, - and _, and begins with a letter; choose another name"
        raise ArgumentError(argument="--name", problem=problem)


def _outcomes(request: Request, server: Local | Remote | None, machine: Machine) -> Iterator[Outcome]:
    """Change the configuration file of each requested client, and yield the outcomes.

    After an error in one file, the other files are still changed.
    """
    names = list(dict.fromkeys(request.clients))
    if ALL in names:
        names = list(dict.fromkeys(location.client.name for location in clients_here(machine)))
        if request.scope == "project":
            names = [name for name in names if CLIENTS[name].project is not None]
        if not names:
            problem = f"no client was found on this machine; use --client with one of {', '.join(CLIENTS)}"
            raise ArgumentError(argument="--client all", problem=problem)
    for name in names:
        client = CLIENTS[name]
        if server is None:  # in the reverse order, so that a file that contains both is restored byte for byte
            yield from _with_texts(client, request, server, machine)
        try:
            places = locations_of(client, request.scope or "user", machine)
        except ArgumentError as error:
            yield Outcome(client, None, None, problem=str(error))
            continue
        for location in places:
            try:
                yield _changed(location, request, server)
            except MemoryOSError as error:
                yield Outcome(client, location.file, None, problem=masked(str(error)))
        if server is not None:
            yield from _with_texts(client, request, server, machine)


def _with_texts(client: Client, request: Request, server: Local | Remote | None, machine: Machine) -> Iterator[Outcome]:
    """Add the requested hooks and rules of a client, or remove all if ``server`` is None. Yield the outcomes."""
    scope = request.scope or "user"
    wanted = [("hooks", client.name in hooks.HOOK_FILES, request.has_hooks)]
    wanted += [("rules", client.name in rules.RULE_FILES, request.has_rules)]
    for also, is_supported, is_requested in wanted:
        if not (is_supported if server is None or ALL in request.clients else is_requested):
            continue
        if server is not None and not is_requested:
            continue
        path = None
        try:
            if also == "hooks":
                path, plan, then = _hook_plan(client, server, request, machine)
            else:
                path, then = rules.file_of(client.name, scope, machine), None
                plan = rules.plan_uninstall(path) if server is None else rules.plan_install(path)
            if server is None and not plan.changes:
                continue
            yield _text_outcome(client, plan, request, also, then, is_removal=server is None)
        except MemoryOSError as error:
            if server is not None or not isinstance(error, ArgumentError):
                yield Outcome(client, path, None, problem=masked(str(error)), also=also)


def _hook_plan(
    client: Client, server: Local | Remote | None, request: Request, machine: Machine
) -> tuple[Path, hooks.TextPlan, str | None]:
    if client.name not in hooks.HOOK_FILES:
        problem = f"{client.title} cannot run hooks; use --rules, or one of {', '.join(hooks.HOOK_FILES)}"
        raise ArgumentError(argument="--hooks", problem=problem)
    path = hooks.file_of(client.name, request.scope or "user", machine)
    if server is None:
        return path, hooks.plan_uninstall(client.name, path), None
    if isinstance(server, Remote):
        problem = (
            "this option cannot be combined with --http, because hooks open the memory on this machine; "
            "omit one of the options"
        )
        raise ArgumentError(argument="--hooks", problem=problem)
    return path, hooks.plan_install(client.name, path, server), hooks.HOOK_FILES[client.name].then


def _text_outcome(
    client: Client, plan: hooks.TextPlan, request: Request, also: str, then: str | None, *, is_removal: bool
) -> Outcome:
    if not plan.changes:
        return Outcome(client, plan.path, Action.NOTHING, also=also)
    backup = None
    if not request.is_dry_run:
        backup = files.write(plan.file, plan.file.encoded(plan.after), utc_now(), is_private=request.scope != "project")
    action = Action.REMOVE if is_removal else Action.ADD
    change = shown_change(plan.path, plan.file.text, plan.after)
    return Outcome(client, plan.path, action, change, backup, also=also, next_step=then)


def _changed(location: Location, request: Request, server: Local | Remote | None) -> Outcome:
    if location.client.own_command is not None and location.scope == "user":
        return _through_its_command(location, request, server)
    if server is None:
        plan = planning.plan_uninstall(location, request.name, is_forced=request.is_forced)
    else:
        plan = planning.plan_install(location, server, request.name, is_forced=request.is_forced)
    backup = None if request.is_dry_run else plan.carry_out(utc_now())
    change = shown_change(location.file, plan.before, plan.after)
    return Outcome(
        location.client, location.file, plan.action, change, backup, is_client_there=location.is_client_there
    )


def _through_its_command(location: Location, request: Request, server: Local | Remote | None) -> Outcome:
    """Add, update or remove the server's entry with the client's own command, and return what was done.

    If ``server`` is None, the entry is removed. In a dry run, nothing is changed.
    """
    client = location.client
    present = planning.entries_of(client, files.read(location.file)).get(request.name)
    if present is not None and not request.is_forced:
        planning.check_ours(location, present, request.name, "replace" if server else "remove")
    entry = None if server is None else entries.entry_of(client, server, present)
    # The client adds an empty ``env`` to entries.
    is_same = entry is not None and isinstance(present, Mapping) and {"env": {}, **entry} == {"env": {}, **present}
    if entry == present or is_same:
        return Outcome(client, location.file, Action.NOTHING)
    commands = [] if present is None else [claude_code.remove_command(client, request.name)]
    commands += [] if entry is None else [claude_code.add_command(client, request.name, entry)]
    if not request.is_dry_run:
        claude_code.run(client, commands)
    action = Action.REMOVE if entry is None else Action.ADD if present is None else Action.UPDATE
    return Outcome(client, location.file, action, masked("\n".join(map(entries.quoted, commands))))


def _cautions(request: Request, server: Local | Remote) -> Iterator[str]:
    """Yield warnings about environment variables, paths and tokens that may cause problems."""
    if isinstance(server, Local):
        names = sorted(
            name for name in os.environ if name.startswith("MEMORYOS_") and name[9:].lower() in Settings.model_fields
        )
        if names:
            yield (
                f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} set here, but perhaps not when a client "
                "starts the server; put these settings in a file, and pass it with --config"
            )
        if re.search(r"[/\\]uv[/\\](?:cache[/\\])?archive-v\d", server.command):
            yield (
                f"{server.command} is in a cache that may be cleared; install memoryos-mcp-server in a permanent "
                "environment, and run this command from there"
            )
    elif server.token is not None:
        if request.scope == "project":
            yield "the project's file contains the token; do not commit this file, or use --token-variable NAME instead"
        if server.url.startswith("http://") and urlsplit(server.url).hostname not in LOOPBACK:
            yield "the token is sent unencrypted, so others on the network can read it; use an https:// address"
