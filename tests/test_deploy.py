"""Container, proxy and the instructions for teams agree with the server."""

import json
import re
import shutil
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.client import HTTPSConnection
from pathlib import Path

import click
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from memoryos_mcp.cli.main import cli
from memoryos_mcp.config import ENV_PREFIX, Settings
from memoryos_mcp.config.sources import load_settings
from tests.documents import joined, section
from tests.recipes import health_check, only_step, stages
from tests.servers import EXIT_LIMIT_S, clean_environment, serve_command, wait_until

ROOT = Path(__file__).parent.parent
NAME = "memory.example.org"


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def instruction(name: str) -> str:
    """Return the arguments of an instruction that occurs once in the image for HTTP."""
    return only_step("http", name).rest


def container_environment() -> dict[str, str]:
    return only_step("http", "ENV").pairs()


def parsed(arguments: list[str]) -> click.Context:
    """Return the parsed parameters of a command line, which is not run."""
    group, command, *rest = cli, *arguments
    found = group.commands[command]
    if isinstance(found, click.Group):
        found, rest = found.commands[rest[0]], rest[1:]
    return found.make_context(command, rest)


def settings_of(arguments: list[str]) -> Settings:
    flags = parsed(arguments).params
    assert flags.pop("config_file") is None
    return load_settings(None, {name: value for name, value in flags.items() if value is not None})


@pytest.fixture
def in_the_container(bare_environment: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the environment of the image, except PATH."""
    for name, value in container_environment().items():
        if name != "PATH":
            monkeypatch.setenv(name, value)


def test_the_container_serves_all_http_transports_to_the_outside(in_the_container: None) -> None:
    assert json.loads(instruction("ENTRYPOINT")) == ["memoryos-mcp"]
    settings = settings_of(json.loads(instruction("CMD")))
    assert (settings.transport, settings.host) == ("all", "0.0.0.0")  # noqa: S104 - what the container listens on
    assert not settings.is_only_for_this_machine


def test_the_containers_data_folder_is_on_its_volume(in_the_container: None) -> None:
    variables = {name: value for name, value in container_environment().items() if name.startswith(ENV_PREFIX)}
    assert variables == {f"{ENV_PREFIX}DATA_STORAGE_PATH": instruction("VOLUME")}
    assert settings_of(["serve"]).data_storage_path == Path(instruction("VOLUME")).absolute()
    assert f"- memoryos:{instruction('VOLUME')}\n" in text_of("compose.yaml")
    assert f"-v memoryos:{instruction('VOLUME')} " in section("Containers")
    assert "\n  memoryos:\n    name: memoryos " in text_of("compose.yaml")


def test_the_container_does_not_run_as_root() -> None:
    user = instruction("USER")
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
    assert all(f"id {number} " in instruction("RUN") for number in user.split(":"))
    assert f"user {user.split(':')[0]}" in joined(section("Containers"))


def test_no_file_of_the_image_is_ignored() -> None:
    kept = re.findall(r"^!(.+)$", text_of(".dockerignore"), re.MULTILINE)
    copied = [line.split()[1:-1] for line in text_of("Dockerfile").splitlines() if re.match(r"COPY (?!--from)", line)]
    assert sorted(kept) == sorted(name for names in copied for name in names)
    assert all((ROOT / name).exists() for name in kept)


def test_ports_agree_in_the_container_compose_and_the_proxy(in_the_container: None) -> None:
    port = settings_of(json.loads(instruction("CMD"))).port
    assert int(instruction("EXPOSE")) == port
    assert f"HTTPConnection('127.0.0.1', {port}," in health_check()[-1]
    assert f'- "127.0.0.1:{port}:{port}"\n' in text_of("compose.yaml")
    assert f"proxy_pass http://127.0.0.1:{port};" in text_of("deploy/nginx.conf")
    assert Settings.model_fields["port"].default == port


def test_named_targets_and_arguments_are_in_the_dockerfile() -> None:
    known = stages(text_of("Dockerfile"))
    assert list(known)[-1] == "http"  # the default target
    assert re.findall(r"^      target: (\w+)$", text_of("compose.yaml"), re.MULTILINE) == ["http"]
    texts = [text_of(name) for name in ("Dockerfile", "docs/containers.md")]
    for text in texts:
        targets = re.findall(r"docker build [^`\n]*--target (\w+)", text)
        assert targets
        assert set(targets) <= known.keys()
    arguments = [name for step in known["build"].steps if step.name == "ARG" for name in step.pairs()]
    assert set(re.findall(r"--build-arg (\w+)=", texts[-1])) == set(arguments)


def test_the_image_for_stdio_serves_over_stdin_and_stdout(in_the_container: None) -> None:
    settings = settings_of(only_step("stdio", "CMD").words())
    assert (settings.transport, settings.data_storage_path) == ("stdio", Path(instruction("VOLUME")).absolute())


def test_compose_checks_health_as_the_image_does() -> None:
    check = text_of("compose.yaml").partition("test:\n")[2].partition("interval:")[0]
    items = [line.strip().removeprefix("- ").strip('"') for line in check.splitlines() if line.strip()]
    assert items == ["CMD", *health_check()]


def test_compose_waits_longer_than_the_server_at_shutdown() -> None:
    (grace_s,) = re.findall(r"stop_grace_period: (\d+)s", text_of("compose.yaml"))
    assert int(grace_s) > Settings.model_fields["shutdown_grace_s"].default


def test_the_health_check_fails_without_a_server(data: Path) -> None:
    assert health_check()[:2] == ["python", "-c"]
    with http_server(data) as port:
        assert health_check_on(port) == 0
    assert health_check_on(port) == 1


def test_the_proxy_has_the_servers_limits_and_no_buffering() -> None:
    directives = dict(re.findall(r"^ +(\w+) (.+);", text_of("deploy/nginx.conf"), re.MULTILINE))
    assert int(directives["client_max_body_size"]) == Settings.model_fields["max_body_bytes"].default
    assert directives["proxy_buffering"] == "off"
    assert directives["proxy_read_timeout"] == "1h"
    headers = re.findall(r"proxy_set_header ([\w-]+) (\S+);", text_of("deploy/nginx.conf"))
    assert {("Host", "$http_host"), ("X-Request-Id", "$request_id")} <= set(headers)


@pytest.mark.skipif(shutil.which("nginx") is None, reason="there is no nginx here")
def test_a_call_through_the_proxy_uses_the_public_name(data: Path, tmp_path: Path) -> None:
    certificate = self_signed(tmp_path)
    with http_server(data, {"public_url": f"https://{NAME}"}) as port, nginx(tmp_path, port) as tls_port:
        trust = ssl.create_default_context(cafile=certificate)
        raw = socket.create_connection(("127.0.0.1", tls_port), timeout=10)
        with trust.wrap_socket(raw, server_hostname=NAME) as encrypted:
            connection = HTTPSConnection(NAME)
            connection.sock = encrypted
            connection.request("GET", "/health/live")
            live = connection.getresponse()
            assert (live.status, json.loads(live.read())) == (200, {"status": "ok"})
            assert re.fullmatch("[0-9a-f]{32}", live.headers["x-request-id"])
            connection.request("POST", "/mcp", body=b"{}")
            assert connection.getresponse().status == 401


def test_every_command_in_the_team_section_is_valid(bare_environment: None) -> None:
    lines = re.findall(r"^(?:docker compose exec memoryos )?memoryos-mcp (.+)$", section("For a team"), re.MULTILINE)
    assert lines == ["serve --transport all", "token add ada"]
    sentences = joined(section("For a team"))
    lines += re.findall(r"^#   memoryos-mcp (.+)$", text_of("deploy/nginx.conf"), re.MULTILINE)
    lines += [f"serve {flags}" for flags in re.findall(r"`(--(?:oidc|public|log)-[^`]+)`", sentences)]
    lines += [f"token add ada {flags}" for flags in re.findall(r"`(--(?:scope|expires) \S[^`]+)`", sentences)]
    assert len(lines) == 8
    for line in lines:
        if line.startswith("serve"):
            assert settings_of(line.split()).model_fields_set
        else:
            parsed(line.split())


@contextmanager
def http_server(folder: Path, settings: dict[str, object] | None = None) -> Iterator[int]:
    """Run a server on a free port of this machine; yield the port."""
    log = folder.parent / "http.log"
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            serve_command(folder, {"transport": "all", "port": 0} | (settings or {})),
            stdin=subprocess.DEVNULL,
            stderr=stderr,
            env=clean_environment(),
        )
    try:
        wait_until(lambda: listening_port(log) is not None or process.poll() is not None, "the server listens")
        port = listening_port(log)
        assert port is not None, log.read_text(encoding="utf-8")
        yield port
    finally:
        process.terminate()
        try:
            process.wait(EXIT_LIMIT_S)
        finally:
            process.kill()


def listening_port(log: Path) -> int | None:
    found = re.search(r"listening on http://127\.0\.0\.1:(\d+)\s", log.read_text(encoding="utf-8"))
    return int(found[1]) if found else None


def health_check_on(port: int) -> int:
    """Return the exit code of the image's health check for another port."""
    code = health_check()[2].replace("8000", str(port))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, timeout=30)
    return done.returncode


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def self_signed(folder: Path) -> Path:
    """Write a certificate for `NAME` and its key under the names that the proxy looks for; return the certificate."""
    private, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(private, hashes.SHA256())
    )
    encoding = serialization.Encoding.PEM
    file = folder / "fullchain.pem"
    file.write_bytes(certificate.public_bytes(encoding))
    (folder / "privkey.pem").write_bytes(
        private.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return file


@contextmanager
def nginx(folder: Path, port: int) -> Iterator[int]:
    """Run the published proxy configuration with other files and ports; yield the TLS port."""
    plain_port, tls_port = free_port(), free_port()
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = " ".join(f"{kind}_temp_path {folder / kind};" for kind in kinds)
    changes = {
        "events {}": f"pid {folder / 'nginx.pid'}; daemon off; error_log stderr; events {{}}",
        "http {": f"http {{ access_log off; {temporary}",
        "listen 80;": f"listen 127.0.0.1:{plain_port};",
        "listen 443 ssl;": f"listen 127.0.0.1:{tls_port} ssl;",
        f"/etc/ssl/{NAME}/": f"{folder}/",
        "127.0.0.1:8000": f"127.0.0.1:{port}",
    }
    text = text_of("deploy/nginx.conf")
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    configuration = folder / "nginx.conf"
    configuration.write_text(text, encoding="utf-8")
    log = folder / "nginx.log"
    with log.open("wb") as stderr:
        process = subprocess.Popen(["nginx", "-e", "stderr", "-c", configuration], stderr=stderr)
    try:
        wait_until(lambda: is_open(tls_port) or process.poll() is not None, "the proxy listens")
        assert process.poll() is None, log.read_text(encoding="utf-8")
        yield tls_port
    finally:
        process.terminate()
        process.wait(EXIT_LIMIT_S)


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
