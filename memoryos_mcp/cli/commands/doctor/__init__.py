"""The command ``memoryos-mcp doctor``: check whether the server can work, and show what to change.

The command does not change any memory, and does not send the content of a memory anywhere.
"""

import os
from collections.abc import AsyncIterator, Callable, Mapping

from rich.console import Console
from rich.text import Text

from memoryos_mcp.cli.commands.doctor.checks import Check, Diagnosis, Verdict, failed_by, passed, warned
from memoryos_mcp.cli.commands.doctor.clients import check_clients
from memoryos_mcp.cli.commands.doctor.machine import (
    check_folder,
    check_memory,
    check_python,
    check_strategy,
    check_vector_index,
)
from memoryos_mcp.cli.commands.doctor.models import check_embedder, check_llm, check_replay, configured, how_to_use_one
from memoryos_mcp.cli.terminal import make_console, print_report
from memoryos_mcp.config import Settings
from memoryos_mcp.config.problems import CONTROL
from memoryos_mcp.errors import ConfigError
from memoryos_mcp.llm.providers import Endpoint, endpoint_of
from memoryos_mcp.retrieval.index.choice import FAISS
from memoryos_mcp.retrieval.strategies import BUILT_IN

_STYLES = {Verdict.OK: "green", Verdict.WARN: "yellow", Verdict.FAIL: "bold red"}


async def run_doctor(load: Callable[[], Settings], *, as_json: bool) -> bool:
    """Run the checks and print their results. Return False if a check failed.

    Without ``as_json``, each result is printed as soon as it is known. With ``as_json``, all results are printed at the
    end. ``load`` reads the settings. If ``load`` raises `ConfigError`, this counts as a failed check.
    """
    console = make_console()
    checks: list[Check] = []
    async for check in _examine(load, os.environ):
        checks.append(check)
        if not as_json:
            _print(console, check)
    diagnosis = Diagnosis(checks=checks, ok=all(check.verdict is not Verdict.FAIL for check in checks))
    print_report(diagnosis, [], as_json=as_json)
    return diagnosis.ok


def _print(console: Console, check: Check) -> None:
    text = check.found if check.fix is None else f"{check.found}; {check.fix}"
    mark = Text(f"{check.verdict:<4}", style=_STYLES[check.verdict])
    console.print(Text.assemble(mark, f"  {check.name:<21}  ", CONTROL.sub("?", text)), soft_wrap=True)


async def _examine(load: Callable[[], Settings], environment: Mapping[str, str]) -> AsyncIterator[Check]:
    """Yield the results of the checks one by one. Checks that cannot work after an earlier failure are skipped."""
    yield check_python()
    try:
        settings = load()
    except ConfigError as error:
        yield failed_by("settings", error)
        async for check in check_clients():
            yield check
        return
    configuration, endpoint = _configured(settings, environment)
    yield configuration
    yield await check_folder(settings)
    yield await check_memory(settings)
    if settings.vector_index != FAISS:
        yield await check_vector_index(settings)
    if settings.retrieval_strategy not in BUILT_IN:
        yield await check_strategy(settings)
    async for check in check_clients():
        yield check
    yield await check_embedder(settings)
    if configuration.verdict is Verdict.FAIL:
        return
    if settings.llm_replay_file is not None:
        yield check_replay(settings.llm_replay_file)
    elif endpoint is None:
        yield passed(
            "llm",
            "no LLM is configured, and none is required",
            f"to use one, {how_to_use_one(environment)}",
        )
    else:
        for check in await check_llm(settings, endpoint):
            yield check


def _configured(settings: Settings, environment: Mapping[str, str]) -> tuple[Check, Endpoint | None]:
    """Check the LLM's settings. Return the result and the LLM's endpoint.

    The endpoint is None if no LLM is configured, or if the settings are not valid.
    """
    try:
        endpoint = endpoint_of(settings, environment)
    except ConfigError as error:
        return failed_by("settings", error), None
    found = configured(settings, endpoint)
    if endpoint is None or endpoint.provider == "openai" or "llm_model" in settings.model_fields_set:
        return passed("settings", found), endpoint
    fix = f"set llm_model to a model that this API provides; the default {settings.llm_model} is a model of OpenAI"
    return warned("settings", found, fix), endpoint
