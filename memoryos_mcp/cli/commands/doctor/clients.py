"""Checks of the MCP clients on this machine: whether they can start or reach the server."""

import os
from collections.abc import AsyncIterator, Mapping
from typing import Any

from memoryos_mcp.cli.commands.doctor.checks import Check, failed, parts, passed, warned
from memoryos_mcp.cli.commands.doctor.reaching import Trouble, reaching
from memoryos_mcp.cli.commands.installing import clients_here
from memoryos_mcp.cli.installer import entries, files, planning
from memoryos_mcp.cli.installer.catalogue import Client
from memoryos_mcp.cli.installer.places import Found, Machine
from memoryos_mcp.errors import ClientFileError


async def check_clients() -> AsyncIterator[Check]:
    """Yield a check for each client's file, or a single one if there are no clients."""
    try:
        here = clients_here(Machine.this())
    except ClientFileError as error:  # only a warning: a server in a container needs no clients here
        yield warned("clients", *parts(error))
        return
    if not here:
        yield passed(
            "clients", "no MCP client was found on this machine", "docs/clients.md explains how to add one by hand"
        )
    for found_file in here:
        yield await _check(found_file)


async def _check(found: Found) -> Check:
    name = f"client_{found.client.name}"
    try:
        listed = planning.entries_of(found.client, files.read(found.file))
    except ClientFileError as error:
        return failed(name, error)
    again = f"memoryos-mcp install --client {found.client.name}"
    ours, others = dict[str, Mapping[str, Any]](), list[str]()
    for key, entry in listed.items():
        kind = entries.kind_of(found.client, entry)
        if kind is entries.Kind.OTHER_PROJECT:
            others.append(key)
        elif kind is entries.Kind.OURS and (key == entries.NAME or isinstance(entry.get("command"), str)):
            ours[key] = entry
    for key, entry in ours.items():
        if (trouble := await _trouble_of(found.client, entry)) is not None:
            option = "" if key == entries.NAME else f" --name {key}"
            fix = trouble.fix or f"{again}{option}"
            return Check(name=name, verdict=trouble.verdict, found=f'"{key}": {trouble.found}', fix=fix)
    if others:
        told = f'"{others[0]}" starts another project whose package is called memoryos-mcp'
        return warned(name, told, f"take it out of {found.file}, then {again}")
    if ours:
        return passed(name, f"added in {found.file}")
    if entries.NAME in listed:
        told = f'"{entries.NAME}" in {found.file} is not an entry of this program'
        return warned(name, told, f"{again} --force replaces it, --name NAME adds one")
    return passed(name, f"not added in {found.file}", f"{again} adds it")


async def _trouble_of(client: Client, entry: Mapping[str, Any]) -> Trouble | None:
    """Return what is wrong with an entry for this server; None if nothing is."""
    if client.http is not None and "command" not in entry:
        return await reaching(entry, client.http, os.environ)
    problem = entries.problem_of(entry)
    return None if problem is None else Trouble(problem)
