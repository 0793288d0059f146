"""`deploy/compose.postgres.yaml` agrees with the settings, and what it starts runs here without Docker."""

import asyncio
import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import tomllib
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import psycopg
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from benchmarks.postgres import OWNER, PostgresServer, wheel_programs
from memoryos_mcp.config import ENV_PREFIX, Settings
from tests.compose import (
    DEPLOY,
    ROOT,
    SECRETS,
    Service,
    balancer_configuration,
    content,
    environment,
    initialise,
    make_secrets,
    name_server,
    password_of,
    services,
)
from tests.http_server import Asker, HttpServer, bearer
from tests.recipes import only_step, stages
from tests.servers import ERAS, EXIT_LIMIT_S, Era, clean_environment, wait_until
from tests.test_deploy import free_port, is_open, parsed, settings_of, text_of

SERVICES = services()
ADDRESSES = ("127.0.0.2", "127.0.0.3")
LIMIT_S = 60
# Calls at this distance keep within the limit of requests per second that the servers have by default.
PAUSE_S = 0.1


def connection_options(service: Service) -> dict[str, str]:
    """Return the options of a service's database address."""
    found = psycopg.conninfo.conninfo_to_dict(service.environment[f"{ENV_PREFIX}DATABASE_URL"])
    return {name: str(value) for name, value in found.items()}


def test_the_servers_listen_where_the_balancer_looks(bare_environment: None) -> None:
    settings = settings_of(SERVICES["memoryos"].command)
    # The older transport would need sticky routing.
    assert (settings.transport, settings.host) == ("http", "0.0.0.0")  # noqa: S104 - of the container
    assert not settings.is_only_for_this_machine
    proxy = text_of("deploy/balancer.conf")
    assert f"set $servers http://memoryos:{settings.port};" in proxy
    assert "ip_hash" not in proxy
    assert SERVICES["memoryos"].more["deploy"] == {"replicas": 2}


def test_only_the_balancer_is_reachable_and_only_from_this_machine() -> None:
    ports = {name: service.ports for name, service in SERVICES.items() if service.ports}
    (listens,) = re.findall(r"listen (\d+);", text_of("deploy/balancer.conf"))
    assert ports == {"balancer": [f"127.0.0.1:{listens}:{listens}"]}
    assert content()["networks"]["database"] == {"internal": True}
    members = {name for name, service in SERVICES.items() if "database" in service.more.get("networks", ["default"])}
    assert members == {"postgres", "migrate", "memoryos"}


def test_both_proxies_have_the_same_limits() -> None:
    names = (
        "client_max_body_size",
        "proxy_http_version",
        "proxy_buffering",
        "proxy_read_timeout",
        "proxy_send_timeout",
    )
    for name in names:
        values = [re.findall(rf"^ +{name} (.+);", text_of(f"deploy/{file}"), re.MULTILINE) for file in PROXIES]
        assert values[0] == values[1]
        assert len(values[0]) == 1
    # Otherwise a request that stores a page might be sent twice.
    repeated = re.findall(r"proxy_next_upstream (.+);", text_of("deploy/balancer.conf"))
    assert repeated == ["error timeout"]


PROXIES = ("nginx.conf", "balancer.conf")


def test_accounts_and_secrets_agree_with_the_script_of_the_database(tmp_path: Path) -> None:
    script = text_of("deploy/postgres.sql")
    for name, account, secret in (("migrate", "memoryos_owner", "owner"), ("memoryos", "memoryos", "app")):
        service = SERVICES[name]
        options = connection_options(service)
        assert options == {"user": account, "host": "postgres", "dbname": "memoryos", "service": "memoryos"}
        assert set(service.environment) == {f"{ENV_PREFIX}DATABASE_URL", "PGSERVICEFILE"}
        assert service.environment["PGSERVICEFILE"] == f"{SECRETS}/{secret}"
        assert service.secrets == [secret]
        assert f"{SECRETS}/{secret}`" in script
        assert re.search(rf"CREATE ROLE {account} LOGIN\b.*PASSWORD :'{secret}_password';", script)
    database = SERVICES["postgres"]
    assert database.environment == {"POSTGRES_PASSWORD_FILE": f"{SECRETS}/superuser"}
    assert database.secrets == list(content()["secrets"])
    made = make_secrets(tmp_path)
    for name, given in content()["secrets"].items():
        assert (DEPLOY / given["file"]).resolve().relative_to(ROOT) == Path("secrets", name)
        assert stat.S_IMODE((made / name).stat().st_mode) == 0o444
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    assert "/secrets/\n" in text_of(".gitignore")
    passwords = {password_of(made / "owner"), password_of(made / "app"), (made / "superuser").read_text("utf-8")}
    assert all(re.fullmatch("[0-9a-f]{48}", password) for password in passwords)
    assert len(passwords) == 3


def test_passwords_of_a_database_in_use_are_not_replaced(tmp_path: Path) -> None:
    made = make_secrets(tmp_path)
    before = {file.name: file.read_bytes() for file in made.iterdir()}
    again = subprocess.run(
        ["sh", DEPLOY / "secrets.sh"], cwd=tmp_path, capture_output=True, check=False, encoding="utf-8", timeout=LIMIT_S
    )
    assert again.returncode == 1
    assert "they were not changed" in again.stderr
    assert {file.name: file.read_bytes() for file in made.iterdir()} == before


def test_every_container_is_restricted() -> None:
    for name, service in SERVICES.items():
        assert service.more["read_only"] is True, name
        assert service.more["cap_drop"] == ["ALL"], name
        assert service.more["security_opt"] == ["no-new-privileges:true"], name
        assert "/tmp" in service.tmpfs, name  # noqa: S108 - of the container
        is_ours = service.more["image"] == "memoryos-mcp-server"
        assert is_ours or re.search(r":\D*\d", service.more["image"]), name
        # Our image has its own user.
        assert is_ours == ("build" in service.more) == ("user" not in service.more), name
        assert not is_ours or only_step("http", "VOLUME").rest in service.tmpfs, name


def test_mounted_files_exist() -> None:
    mounts = [mount.split(":") for service in SERVICES.values() for mount in service.volumes]
    files = [source for source, *_ in mounts if source.startswith("./")]
    assert all((DEPLOY / source).is_file() for source in files)
    assert all(options == ["ro"] for source, _, *options in mounts if source in files)
    assert {source for source, *_ in mounts if source not in files} == set(content()["volumes"])


def test_services_start_one_after_the_other(bare_environment: None) -> None:
    order = {name: {n: each["condition"] for n, each in s.depends_on.items()} for name, s in SERVICES.items()}
    assert order == {
        "postgres": {},
        "migrate": {"postgres": "service_healthy"},
        "memoryos": {"postgres": "service_healthy", "migrate": "service_completed_successfully"},
        "balancer": {"memoryos": "service_healthy"},
    }
    assert parsed(SERVICES["migrate"].command).info_name == "doctor"
    assert SERVICES["migrate"].more["restart"] == "no"
    # The servers have the check of the image, whose port is theirs.
    assert SERVICES["memoryos"].healthcheck == {}
    assert SERVICES["migrate"].healthcheck == {"disable": True}
    (grace_s,) = re.findall(r"^(\d+)s$", SERVICES["memoryos"].more["stop_grace_period"])
    assert int(grace_s) > Settings.model_fields["shutdown_grace_s"].default


def test_the_image_contains_the_extras_that_the_file_needs() -> None:
    (extras,) = [
        step.pairs()["EXTRAS"] for step in stages(text_of("Dockerfile"))["build"].steps if "EXTRAS=" in step.rest
    ]
    project = tomllib.loads(text_of("pyproject.toml"))["project"]
    assert set(extras.split(",")) == {"otel", "postgres"} <= set(project["optional-dependencies"])
    for name in ("memoryos", "migrate"):
        build = SERVICES[name].more["build"]
        assert build == {"context": "..", "target": "http"}


@dataclass(frozen=True, slots=True)
class Running:
    """What the file starts, on this machine."""

    database: PostgresServer
    secrets: Path
    servers: list[HttpServer]
    url: str
    token: str


def our_command(arguments: list[str], variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "memoryos_mcp", *arguments],
        env=clean_environment(variables),
        capture_output=True,
        check=False,
        encoding="utf-8",
        timeout=LIMIT_S,
    )


def check_of(service: Service, changes: dict[str, str]) -> list[str]:
    """Return the command of a service's health check, with changed words."""
    kind, *command = service.healthcheck["test"]
    assert kind == "CMD"
    text = shlex.join(command)
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    return shlex.split(text)


@contextmanager
def nginx(configuration: Path, port: int) -> Iterator[None]:
    log = configuration.with_name("log")
    with log.open("wb") as stderr:
        process = subprocess.Popen(["nginx", "-e", "stderr", "-c", configuration, "-g", "daemon off;"], stderr=stderr)
    try:
        wait_until(lambda: is_open(port) or process.poll() is not None, "the balancer listens")
        assert process.poll() is None, log.read_text(encoding="utf-8")
        yield
    finally:
        process.terminate()
        process.wait(EXIT_LIMIT_S)


def server_at(address: str, port: int, folder: Path, variables: dict[str, str]) -> HttpServer:
    """Run one of the servers as the file does, on another address."""
    settings = settings_of(SERVICES["memoryos"].command)
    flags = {"host": address, "port": port, "embedding_model_name": "none"}
    return HttpServer(folder, flags, transport=settings.transport, env=variables, name=address)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Everything that the file starts, in its order."""
    if shutil.which("nginx") is None:
        pytest.skip("there is no nginx here")
    folder = tmp_path_factory.mktemp("compose")
    secrets = make_secrets(folder)
    with ExitStack() as stack:
        database = PostgresServer(has_vector=True)
        stack.callback(database.close)
        check = check_of(SERVICES["postgres"], {"pg_isready": f"{wheel_programs()}/pg_isready -p {database.port}"})
        assert subprocess.run(check, check=False, capture_output=True, timeout=LIMIT_S).returncode == 0
        initialise(database, secrets)
        as_owner, as_app = (environment(SERVICES[name], database, secrets) for name in ("migrate", "memoryos"))
        too_early = our_command(["token", "list"], as_app)
        assert "does not allow this account to create or use the tables" in too_early.stderr
        for _ in range(2):  # as at each start
            migrated = our_command(SERVICES["migrate"].command, as_owner)
            assert migrated.returncode == 0, migrated.stdout + migrated.stderr
        port, server_port = free_port(), free_port()
        servers = [
            stack.enter_context(server_at(address, server_port, folder / "data", as_app)) for address in ADDRESSES
        ]
        name_server_port = stack.enter_context(name_server("memoryos", ADDRESSES))
        configuration = balancer_configuration(
            folder / "nginx", port=port, server_port=server_port, name_server_port=name_server_port
        )
        stack.enter_context(nginx(configuration, port))
        made = our_command(["token", "add", "ada", "--scope", "write", "--scope", "admin", "--json"], as_app)
        yield Running(database, secrets, servers, f"http://127.0.0.1:{port}", json.loads(made.stdout)["token"])


@asynccontextmanager
async def client(running: Running, era: Era = "auto") -> AsyncIterator[Asker]:
    async with (
        httpx2.AsyncClient(headers=bearer(running.token), timeout=60) as http,
        Client(streamable_http_client(f"{running.url}/mcp", http_client=http), mode=era) as connected,
    ):
        yield Asker(connected)


async def pages_added(running: Running) -> list[int]:
    """Return how many pages each server says that it has added."""
    counts = []
    async with httpx2.AsyncClient(headers=bearer(running.token), timeout=30) as http:
        for address, server in zip(ADDRESSES, running.servers, strict=True):
            metrics = (await http.get(f"http://{address}:{server.port}/metrics")).text
            found = re.search(r'tool_calls_total\{outcome="ok",tool="add_memory"\} (\d+)', metrics)
            counts.append(int(found[1]) if found else 0)
    return counts


@pytest.mark.campaign
@pytest.mark.parametrize("era", ERAS)
async def test_calls_through_the_balancer_reach_both_servers(running: Running, era: Era) -> None:
    async with asyncio.timeout(LIMIT_S), client(running, era) as ada:
        before = await pages_added(running)
        ids = [await ada.add(f"I planted {era} tree number {number}.") for number in range(20)]
        added = [now - then for now, then in zip(await pages_added(running), before, strict=True)]
        assert sum(added) == len(ids)
        assert all(added)
        for _ in range(6):
            found = await ada.call("retrieve_memory", query=f"{era} tree", max_results=50)
            pages = [*found["retrieved_pages"], *found["short_term_memory"]]
            assert set(ids) <= {page["page_id"] for page in pages}
    large = running.url + "/mcp"
    async with httpx2.AsyncClient(headers=bearer(running.token), timeout=30) as http:
        refused = await http.post(large, content=b" " * (Settings.model_fields["max_body_bytes"].default + 1))
        assert refused.status_code == 413


@pytest.mark.campaign
async def test_no_call_fails_while_one_server_is_stopped(running: Running, tmp_path: Path) -> None:
    first, as_app = running.servers[0], environment(SERVICES["memoryos"], running.database, running.secrets)
    ids: list[str] = []

    async def add(count: int) -> None:
        for _ in range(count):
            ids.append(await ada.add(f"I counted star {len(ids)}."))
            await asyncio.sleep(PAUSE_S)

    async with asyncio.timeout(LIMIT_S), client(running) as ada:
        there = (await ada.call("get_memory_stats"))["total_pages"]
        await add(10)
        async with asyncio.TaskGroup() as group:
            ended = group.create_task(asyncio.to_thread(first.stop))
            while not ended.done():
                await add(1)
        assert ended.result() == 0
        await add(20)
        back = await asyncio.to_thread(server_at(ADDRESSES[0], first.port, tmp_path / "data", as_app).__enter__)
        running.servers[0] = back
        try:
            before = await pages_added(running)
            await add(20)
            assert (await pages_added(running))[0] > before[0]
            assert len(set(ids)) == len(ids)
            assert (await ada.call("get_memory_stats"))["total_pages"] == there + len(ids)
        finally:
            await asyncio.to_thread(back.stop)


@pytest.mark.campaign
def test_the_accounts_have_their_passwords_and_only_their_rights(running: Running) -> None:
    place = f"host=127.0.0.1 port={running.database.port} dbname=memoryos connect_timeout=10"
    for account in ("memoryos_owner", "memoryos"):
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(f"{place} user={account} password=wrong")
    password = password_of(running.secrets / "app")
    with psycopg.connect(f"{place} user=memoryos password={password}", autocommit=True) as connection:
        for sql in (
            "CREATE TABLE memoryos.more ()",
            "CREATE TABLE public.more ()",
            "CREATE SCHEMA more",
            "CREATE TEMPORARY TABLE more ()",
            "ALTER TABLE memoryos.pages DISABLE ROW LEVEL SECURITY",
            "DROP TABLE memoryos.pages",
            "TRUNCATE memoryos.pages",
            "SET ROLE memoryos_owner",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(sql)
        rights = "SELECT rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, rolreplication FROM pg_roles"
        assert connection.execute(f"{rights} WHERE rolname = current_user").fetchone() == (False,) * 5
    with psycopg.connect(running.database.url("memoryos", OWNER)) as connection:
        assert connection.execute("SELECT extname FROM pg_extension WHERE extname = 'vector'").fetchone()


@pytest.mark.campaign
def test_the_balancers_health_check_asks_a_server(running: Running) -> None:
    if shutil.which("wget") is None:
        pytest.skip("there is no wget here")
    check = check_of(SERVICES["balancer"], {"http://127.0.0.1:8000": running.url})
    assert subprocess.run(check, check=False, timeout=LIMIT_S, env=os.environ | {"no_proxy": "*"}).returncode == 0
    nobody = check_of(SERVICES["balancer"], {"http://127.0.0.1:8000": f"http://127.0.0.1:{free_port()}"})
    assert subprocess.run(nobody, check=False, timeout=LIMIT_S, env=os.environ | {"no_proxy": "*"}).returncode != 0
