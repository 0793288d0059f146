"""The protocol's official conformance suite against a real server over Streamable HTTP.

Other scenarios of the suite need tools, prompts and resources of a server that is made for it. The suite cannot send a
token, so the server here is open to this machine only.
"""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.http_server import HttpServer
from tests.memories import NO_MODEL
from tests.programs import CONFORMANCE, NODE, program
from tests.servers import clean_environment

LIMIT_S = 60
# Scenarios, and the checks that each must contain, so that a scenario without checks does not pass.
SCENARIOS = {
    "server-initialize": ["server-initialize"],
    "ping": ["ping"],
    "tools-list": ["tools-list"],
    "resources-list": ["resources-list"],
    "prompts-list": ["prompts-list"],
    "completion-complete": ["completion-complete"],
    "server-sse-multiple-streams": ["server-accepts-multiple-post-streams"],
    "dns-rebinding-protection": ["localhost-host-rebinding-rejected", "localhost-host-valid-accepted"],
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """A server for all scenarios, which store nothing in it."""
    with HttpServer(tmp_path_factory.mktemp("conformance") / "data", NO_MODEL) as running:
        yield running


def run_scenario(server: HttpServer, scenario: str, folder: Path) -> tuple[int, dict[str, str]]:
    """Return the suite's exit code and the status of each of its checks."""
    command = [program(NODE), program(CONFORMANCE), "server", "--url", f"{server.url}/mcp", "--scenario", scenario]
    done = subprocess.run(
        [*command, "--output-dir", str(folder)],
        capture_output=True,
        encoding="utf-8",
        timeout=LIMIT_S,
        check=False,
        cwd=folder,
        env=clean_environment({"HOME": str(folder)}),
        stdin=subprocess.DEVNULL,
    )
    files = list(folder.glob("*/checks.json"))
    assert len(files) == 1, done.stdout + done.stderr
    checks = json.loads(files[0].read_text(encoding="utf-8"))
    return done.returncode, {check["id"]: check["status"] for check in checks}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_scenario_of_the_conformance_suite_passes(served: HttpServer, scenario: str, tmp_path: Path) -> None:
    code, checks = run_scenario(served, scenario, tmp_path)
    assert {name: status for name, status in checks.items() if status != "INFO"} == dict.fromkeys(
        SCENARIOS[scenario], "SUCCESS"
    )
    assert code == 0


def test_a_scenario_that_this_server_cannot_pass_is_seen_to_fail(served: HttpServer, tmp_path: Path) -> None:
    """The scenario needs `test_simple_prompt`, a prompt that only the suite's own server has."""
    code, checks = run_scenario(served, "prompts-get-simple", tmp_path)
    assert list(checks.values()) == ["FAILURE"]
    assert code == 1
