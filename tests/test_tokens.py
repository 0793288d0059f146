"""Static tokens: which tokens are accepted, and what their file contains."""

import os
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoryos_mcp.errors import ArgumentError, DamagedStoreError, NewerStoreError, StorageError
from memoryos_mcp.model.callers import Caller, Scope, TokenState, token_id_of
from memoryos_mcp.storage.sqlite.tokens import NEEDED_NAME, TokenStore, token_file
from tests.fakes import START, Clock
from tests.servers import clean_environment

LIMIT_S = 60
WRITE = frozenset({Scope.WRITE})


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return token_file(tmp_path / "data")


@pytest.fixture
def tokens(path: Path, clock: Clock) -> TokenStore:
    return TokenStore(path, clock=clock)


def command(path: Path, *arguments: str) -> str:
    """Run a command for tokens in another process, and return its output."""
    whole = [sys.executable, "-m", "memoryos_mcp", "token", *arguments, "--data-storage-path", str(path.parent)]
    done = subprocess.run(whole, capture_output=True, check=True, timeout=LIMIT_S, env=clean_environment())
    return done.stdout.decode().strip()


def changed(token: str, at: int) -> str:
    return token[:at] + ("A" if token[at] != "A" else "B") + token[at + 1 :]


def test_a_token_is_found_with_its_user_and_scopes(tokens: TokenStore) -> None:
    token = tokens.add("Zoë Müller", {Scope.READ, Scope.ACT_AS}, START + timedelta(days=1))
    found = tokens.find(token)
    assert found is not None
    assert found.caller == Caller("Zoë Müller", frozenset({Scope.READ, Scope.ACT_AS}), token_id_of(token))
    assert (found.created_at, found.expires_at, found.revoked_at) == (START, START + timedelta(days=1), None)


def test_tokens_are_of_256_bits_and_differ(tokens: TokenStore) -> None:
    made = [tokens.add("ann", WRITE) for _ in range(50)]
    assert len({token.split("_", 2)[2] for token in made}) == len({token_id_of(token) for token in made}) == 50
    assert {len(token.split("_", 2)[2]) for token in made} == {43}
    assert [entry.token_id for entry in tokens.entries()] == sorted(token_id_of(token) for token in made)


def test_no_character_of_a_token_may_differ(tokens: TokenStore) -> None:
    token = tokens.add("ann", WRITE)
    assert [at for at in range(len(token)) if tokens.find(changed(token, at)) is not None] == []
    assert tokens.find(token) is not None


def test_the_secret_of_one_token_opens_no_other(tokens: TokenStore) -> None:
    one, two = tokens.add("ann", WRITE), tokens.add("ann", WRITE)
    assert tokens.find(f"mos_{token_id_of(one)}_{two.split('_', 2)[2]}") is None


@pytest.mark.parametrize("text", ["", "mos_", "Bearer x", "mos_0123456789ab_", "mos_0123456789ab_" + "A" * 43])
def test_an_unknown_token_is_not_found(text: str, tokens: TokenStore) -> None:
    tokens.add("ann", WRITE)
    assert tokens.find(text) is None


def test_a_token_with_something_around_it_is_not_found(tokens: TokenStore) -> None:
    token = tokens.add("ann", WRITE)
    assert all(tokens.find(text) is None for text in (f" {token}", f"{token}\n", token + "A", token.upper()))


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.text()
    | st.text(st.characters(categories=["Cs"]))
    | st.from_regex(r"mos_[0-9a-f]{12}_[A-Za-z0-9_\-]{43}\n?")
)
def test_no_text_makes_a_search_fail(text: str, tokens: TokenStore) -> None:
    assert tokens.find(text) is None
    if not tokens.entries():
        tokens.add("ann", WRITE)


def test_a_token_is_not_accepted_from_its_expiry_on(tokens: TokenStore, clock: Clock) -> None:
    token = tokens.add("ann", WRITE, START + timedelta(hours=1))
    clock.move(hours=1, microseconds=-1)
    assert (tokens.find(token) is not None, tokens.is_needed()) == (True, True)
    clock.move(microseconds=1)
    assert (tokens.find(token), tokens.is_needed()) == (None, True)
    (entry,) = tokens.entries()
    assert entry.state(clock.now) is TokenState.EXPIRED


def test_a_second_revocation_does_not_change_the_time(tokens: TokenStore, clock: Clock) -> None:
    token, other = tokens.add("ann", WRITE), tokens.add("ann", WRITE)
    assert tokens.revoke(token_id_of(token)) is True
    clock.move(hours=1)
    assert tokens.revoke(token_id_of(token)) is False
    assert (tokens.find(token), tokens.find(other) is not None, tokens.is_needed()) == (None, True, True)
    entry = next(entry for entry in tokens.entries() if entry.token_id == token_id_of(token))
    assert (entry.revoked_at, entry.state(clock.now)) == (START, TokenState.REVOKED)


def test_an_unknown_id_cannot_be_revoked(tokens: TokenStore, path: Path) -> None:
    with pytest.raises(ArgumentError, match="no token has this id"):
        tokens.revoke("0123456789ab")
    assert not path.exists()


@pytest.mark.parametrize("user_id", ["", "  ", "\x00", "a\ud800", "x" * 10_001])
def test_a_token_is_only_created_for_a_valid_user_id(user_id: str, tokens: TokenStore, path: Path) -> None:
    with pytest.raises(ArgumentError, match="user_id"):
        tokens.add(user_id, WRITE)
    assert not path.exists()


def test_a_token_needs_a_scope_and_a_future_expiry(tokens: TokenStore, path: Path) -> None:
    with pytest.raises(ArgumentError, match="scopes"):
        tokens.add("ann", set())
    with pytest.raises(ArgumentError, match="expires_at"):
        tokens.add("ann", WRITE, START)
    assert not path.exists()


def test_reading_tokens_creates_no_file(tokens: TokenStore, path: Path) -> None:
    assert (tokens.find("mos_0123456789ab_" + "A" * 43), tokens.entries(), tokens.is_needed()) == (None, [], False)
    assert not path.parent.exists()


@pytest.mark.skipif(os.name == "nt", reason="modes are POSIX's")
def test_the_file_is_private_and_contains_no_secret(tokens: TokenStore, path: Path) -> None:
    token = tokens.add("ann", WRITE)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert sorted(file.name for file in path.parent.iterdir()) == [path.name, NEEDED_NAME]
    content = path.read_bytes()
    assert token_id_of(token).encode() in content
    assert token.split("_", 2)[2].encode() not in content


def test_changes_of_another_process_count_at_once(path: Path) -> None:
    tokens = TokenStore(path, clock=Clock())
    assert tokens.is_needed() is False
    token = command(path, "add", "ann")
    assert tokens.find(token) is not None
    command(path, "revoke", token_id_of(token))
    assert tokens.find(token) is None
    own = tokens.add("bob", WRITE)
    assert token_id_of(own) in command(path, "list")


def test_processes_and_threads_that_add_at_once_lose_nothing(tokens: TokenStore, path: Path, clock: Clock) -> None:
    script = (
        "import sys, pathlib, datetime; from memoryos_mcp.model.callers import Scope\n"
        "from memoryos_mcp.storage.sqlite.tokens import TokenStore\n"
        "tokens = TokenStore(pathlib.Path(sys.argv[1]), clock=lambda: datetime.datetime.now(datetime.UTC))\n"
        "for _ in range(20): print(tokens.add('process', {Scope.READ}))\n"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, env=clean_environment())
        for _ in range(2)
    ]
    made: list[str] = []
    threads = [
        threading.Thread(target=lambda: made.extend(tokens.add("thread", WRITE) for _ in range(20))) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_S)
    printed = b"".join(process.communicate(timeout=LIMIT_S)[0] for process in processes).decode().split()
    assert [process.returncode for process in processes] == [0, 0]
    later = TokenStore(path, clock=lambda: clock.now + timedelta(days=365_000))
    assert sum(later.find(token) is not None for token in [*made, *printed]) == 80
    assert len(tokens.entries()) == 80


def test_a_backup_put_in_the_files_place_counts_at_once(tokens: TokenStore, path: Path, tmp_path: Path) -> None:
    token = tokens.add("ann", WRITE)
    tokens.close()
    (tmp_path / "backup").write_bytes(path.read_bytes())
    tokens.revoke(token_id_of(token))
    assert tokens.find(token) is None
    (tmp_path / "backup").replace(path)
    assert tokens.find(token) is not None
    path.unlink()
    with pytest.raises(DamagedStoreError, match="restore it from a backup"):
        tokens.find(token)


def test_a_copy_written_into_the_open_file_counts_at_once(
    tokens: TokenStore, path: Path, tmp_path: Path, clock: Clock
) -> None:
    ada = tokens.add("ada", {Scope.READ})
    shutil.copyfile(path, tmp_path / "copy.db")
    eve = tokens.add("eve", {Scope.ADMIN})
    assert tokens.find(eve) is not None
    shutil.copyfile(
        tmp_path / "copy.db", path
    )  # the same inode and change counter, by which SQLite would use its cache
    with closing(TokenStore(path, clock=clock)) as other:
        zed = other.add("zed", {Scope.READ})
    assert tokens.find(eve) is None
    assert tokens.find(ada) is not None
    assert tokens.find(zed) is not None


def test_a_closed_store_opens_again_on_demand(tokens: TokenStore) -> None:
    token = tokens.add("ann", WRITE)
    tokens.close()
    tokens.close()
    assert tokens.find(token) is not None


def _emptied(path: Path) -> None:
    os.truncate(path, 0)


def _removed(path: Path) -> None:
    path.unlink()


def _replaced_by_an_empty_database(path: Path) -> None:
    path.unlink()
    apsw.Connection(str(path)).close()
    path.touch()


@pytest.mark.parametrize("lose", [_emptied, _removed, _replaced_by_an_empty_database])
@pytest.mark.parametrize("is_running", [True, False])
def test_a_lost_file_is_an_error_and_a_token_is_still_needed(
    tokens: TokenStore, path: Path, lose: Callable[[Path], None], is_running: bool
) -> None:
    token = tokens.add("ann", WRITE)
    lose(path)
    asked = tokens if is_running else TokenStore(path, clock=Clock())
    assert asked.is_needed()
    for ask in (asked.entries, lambda: asked.find(token)):
        with pytest.raises(DamagedStoreError, match="restore it from a backup"):
            ask()
    assert asked.find(asked.add("ann", WRITE)) is not None


def test_a_running_store_needs_tokens_without_its_folder(tokens: TokenStore, path: Path) -> None:
    tokens.find(tokens.add("ann", WRITE))
    shutil.rmtree(path.parent)
    assert tokens.is_needed()
    assert not TokenStore(path, clock=Clock()).is_needed()


def _no_sqlite(path: Path) -> None:
    path.write_bytes(b"no database at all, but a text\n" * 100)


def _foreign(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE songs (title)")
    connection.close()


def _broken(path: Path) -> None:
    TokenStore(path, clock=Clock()).add("ann", WRITE)
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))


def _without_tables(path: Path) -> None:
    TokenStore(path, clock=Clock()).add("ann", WRITE)
    connection = apsw.Connection(str(path))
    connection.execute("DROP TABLE tokens")
    connection.close()


@pytest.mark.parametrize("spoil", [_no_sqlite, _foreign, _broken, _without_tables])
def test_a_file_that_is_damaged_or_not_ours_is_refused_untouched(spoil: object, tokens: TokenStore, path: Path) -> None:
    path.parent.mkdir()
    assert callable(spoil)
    spoil(path)
    content = path.read_bytes()
    with pytest.raises(DamagedStoreError, match=r"tokens\.db is damaged"):
        tokens.find("mos_0123456789ab_" + "A" * 43)
    with pytest.raises(DamagedStoreError):
        tokens.entries()
    with pytest.raises(DamagedStoreError):
        tokens.add("ann", WRITE)
    assert path.read_bytes() == content


def test_a_scope_that_does_not_exist_is_damage(tokens: TokenStore, path: Path) -> None:
    token = tokens.add("ann", WRITE)
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE tokens SET scopes = 'everything'")
    connection.close()
    with pytest.raises(DamagedStoreError, match="scope"):
        tokens.find(token)


def test_a_newer_file_is_refused_untouched(tokens: TokenStore, path: Path) -> None:
    tokens.add("ann", WRITE)
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA user_version = 2")
    connection.close()
    content = path.read_bytes()
    with pytest.raises(NewerStoreError, match="Upgrade"):
        tokens.entries()
    with pytest.raises(NewerStoreError):
        tokens.add("bob", WRITE)
    assert path.read_bytes() == content


def test_a_file_that_cannot_be_opened_is_an_error(tokens: TokenStore, path: Path) -> None:
    path.mkdir(parents=True)
    with pytest.raises(StorageError, match="cannot be used"):
        tokens.find("mos_0123456789ab_" + "A" * 43)
    with pytest.raises(StorageError):
        tokens.add("ann", WRITE)
