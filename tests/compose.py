"""Reads `deploy/compose.postgres.yaml`, and stands in for the parts of Docker that its services need."""

import re
import socket
import struct
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import yaml  # type: ignore[import-untyped]

from benchmarks.postgres import OWNER, PostgresServer, wheel_programs

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"
FILE = DEPLOY / "compose.postgres.yaml"
# The folder of secrets in a container.
SECRETS = "/run/secrets"
_LIMIT_S = 60


@dataclass(frozen=True, slots=True)
class Service:
    """A service of the file; the attributes have the names of its keys."""

    command: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    secrets: list[str] = field(default_factory=list)
    volumes: list[str] = field(default_factory=list)
    tmpfs: list[str] = field(default_factory=list)
    ports: list[str] = field(default_factory=list)
    depends_on: dict[str, dict[str, str]] = field(default_factory=dict)
    healthcheck: dict[str, Any] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)


def content() -> dict[str, Any]:
    """Return the content of the file."""
    loaded: dict[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return loaded


def services() -> dict[str, Service]:
    """Return the services by name."""
    known = set(Service.__dataclass_fields__) - {"more"}
    return {
        name: Service(
            **{key: value for key, value in given.items() if key in known},
            more={key: value for key, value in given.items() if key not in known},
        )
        for name, given in content()["services"].items()
    }


def make_secrets(folder: Path) -> Path:
    """Run the script that makes the passwords, in a folder; return the folder of the passwords."""
    subprocess.run(["sh", DEPLOY / "secrets.sh"], cwd=folder, check=True, timeout=_LIMIT_S)
    return folder / "secrets"


def password_of(service_file: Path) -> str:
    """Return the password in a service file of libpq."""
    (found,) = re.findall(r"^password=(.+)$", service_file.read_text(encoding="utf-8"), re.MULTILINE)
    return str(found)


def initialise(server: PostgresServer, secrets: Path) -> None:
    """Run the script of the database as PostgreSQL's image does, and demand passwords from then on."""
    script = (DEPLOY / "postgres.sql").read_text(encoding="utf-8").replace(SECRETS, str(secrets))
    command = [str(wheel_programs() / "psql"), "-v", "ON_ERROR_STOP=1", "--no-password", "--no-psqlrc"]
    address = ["--host=127.0.0.1", f"--port={server.port}", f"--username={OWNER}", "--dbname=postgres"]
    done = subprocess.run(
        [*command, *address], input=script, capture_output=True, check=False, encoding="utf-8", timeout=_LIMIT_S
    )
    assert done.returncode == 0, done.stderr
    rules = Path(server.data) / "pg_hba.conf"
    rules.write_text(f"host all {OWNER} 127.0.0.1/32 trust\nhost all all all scram-sha-256\n", encoding="utf-8")
    with psycopg.connect(server.url("postgres", OWNER), autocommit=True) as connection:
        connection.execute("SELECT pg_reload_conf()")


def environment(service: Service, server: PostgresServer, secrets: Path) -> dict[str, str]:
    """Return the environment of a service, with the place of the database and of the secrets on this machine."""
    places = {"@postgres/": f"@127.0.0.1:{server.port}/", SECRETS: str(secrets)}
    return {name: _replaced(text, places) for name, text in service.environment.items()}


def balancer_configuration(folder: Path, *, port: int, server_port: int, name_server_port: int) -> Path:
    """Write the configuration of nginx with other ports, for this machine; return the file."""
    folder.mkdir()
    changes = {
        "/tmp/": f"{folder}/",  # noqa: S108 - of the container
        "resolver 127.0.0.11 ": f"resolver 127.0.0.1:{name_server_port} ",
        "listen 8000;": f"listen 127.0.0.1:{port};",
        "http://memoryos:8000;": f"http://memoryos:{server_port};",
    }
    text = (DEPLOY / "balancer.conf").read_text(encoding="utf-8")
    assert all(old in text for old in changes)
    file = folder / "nginx.conf"
    file.write_text(_replaced(text, changes), encoding="utf-8")
    return file


@contextmanager
def name_server(name: str, addresses: Sequence[str]) -> Iterator[int]:
    """Answer questions for the addresses of a name, as Docker's name server does; yield the port."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("127.0.0.1", 0))

        def answer() -> None:
            while (asked := listener.recvfrom(512))[0]:
                listener.sendto(_answer(asked[0], name, addresses), asked[1])

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        port = listener.getsockname()[1]
        try:
            yield port
        finally:
            listener.sendto(b"", ("127.0.0.1", port))
            thread.join()


def _answer(asked: bytes, name: str, addresses: Sequence[str]) -> bytes:
    question = asked[12 : asked.index(b"\0", 12) + 5]
    assert question == bytes([len(name)]) + name.encode() + b"\0" + struct.pack(">2H", 1, 1), question
    records = b"".join(struct.pack(">3HIH", 0xC00C, 1, 1, 1, 4) + socket.inet_aton(each) for each in addresses)
    return asked[:2] + struct.pack(">5H", 0x8180, 1, len(addresses), 0, 0) + question + records


def _replaced(text: str, changes: Mapping[str, str]) -> str:
    for old, new in changes.items():
        text = text.replace(old, new)
    return text
