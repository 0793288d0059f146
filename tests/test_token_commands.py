"""The token commands: output and errors."""

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import click
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from memoryos_mcp.cli.commands.tokens import expiry
from memoryos_mcp.cli.main import cli
from memoryos_mcp.model.callers import Scope, token_id_of
from memoryos_mcp.storage.sqlite.tokens import TokenStore, token_file
from tests.servers import clean_environment

LIMIT_S = 60
NOW = datetime(2026, 5, 8, 12, tzinfo=UTC)

pytestmark = pytest.mark.usefixtures("bare_environment")


def run(data: Path, *arguments: str, **environment: str) -> Result:
    command = ["token", *arguments, "--data-storage-path", str(data)]
    return CliRunner().invoke(cli, command, env={"COLUMNS": "120", "MEMORYOS_TIMEZONE": "UTC", **environment})


def add(data: Path, *arguments: str) -> str:
    result = run(data, "add", *arguments)
    assert result.exit_code == 0, result.output
    return result.stdout.strip()


def listed(data: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run(data, "list", "--json").stdout)
    return found


def test_only_the_token_goes_to_stdout(data: Path) -> None:
    result = run(data, "add", "Zoë", "--expires", "2999-01-31")
    token = result.stdout.removesuffix("\n")
    assert result.exit_code == 0
    store = TokenStore(token_file(data), clock=lambda: datetime.now(UTC))
    found = store.find(token)
    assert found is not None
    assert (found.user_id, found.scopes) == ("Zoë", frozenset({Scope.WRITE}))
    assert found.expires_at == datetime(2999, 2, 1, tzinfo=UTC)
    assert "This token is not shown again" in result.stderr
    assert "memory of Zoë (write; expires: 2999-02-01 00:00)" in result.stderr
    assert f"memoryos-mcp token revoke {found.token_id}" in result.stderr
    assert token not in result.stderr


def test_a_token_has_only_the_given_scopes(data: Path) -> None:
    add(data, "ann", "--scope", "read", "--scope", "act-as")
    assert listed(data)[0]["scopes"] == ["act-as", "read"]


def test_the_json_output_contains_the_token_and_its_entry(data: Path) -> None:
    result = run(data, "add", "ann", "--json", "--expires", "30d")
    made = json.loads(result.stdout)
    token = made.pop("token")
    assert (result.stderr, made) == ("", listed(data)[0])
    assert made.keys() == {"id", "user_id", "scopes", "created_at", "expires_at", "revoked_at", "state"}
    assert (made["id"], made["state"]) == (token_id_of(token), "valid")
    created, expires = (datetime.fromisoformat(made[name]) for name in ("created_at", "expires_at"))
    assert abs(expires - created - timedelta(days=30)) < timedelta(minutes=1)


def test_the_list_shows_states_and_no_secrets(data: Path) -> None:
    store = TokenStore(token_file(data), clock=lambda: NOW - timedelta(days=2))
    data.mkdir()
    old = store.add("old", {Scope.READ}, NOW - timedelta(days=1))
    store.close()
    ann, bob = add(data, "ann"), add(data, "bob", "--scope", "admin", "--expires", "2999-01-31")
    assert run(data, "revoke", token_id_of(ann)).exit_code == 0
    result = run(data, "list")
    header, *lines = [line.split() for line in result.stdout.splitlines()]
    assert header == ["id", "user", "scopes", "created", "expires", "state"]
    rows = [(line[0], line[1], line[2], line[-1]) for line in lines]
    assert rows == [
        (token_id_of(old), "old", "read", "expired"),
        (token_id_of(ann), "ann", "write", "revoked"),
        (token_id_of(bob), "bob", "admin", "valid"),
    ]
    assert lines[0][3:7] == ["2026-05-06", "12:00", "2026-05-07", "12:00"]
    assert lines[1][5] == "never"
    assert not any(token.split("_", 2)[2] in result.output for token in (old, ann, bob))


def test_an_empty_list_explains_how_to_make_a_token(data: Path) -> None:
    result = run(data, "list")
    assert (result.exit_code, result.stdout) == (
        0,
        "There are no tokens. To make one, run memoryos-mcp token add USER.\n",
    )
    assert listed(data) == []
    assert not data.exists()


def test_no_user_id_can_control_the_terminal(data: Path) -> None:
    assert "\x1b" not in run(data, "add", "\x1b[31mann").stderr
    assert "\x1b" not in run(data, "list").stdout
    assert "␛[31mann" in run(data, "list").stdout
    assert listed(data)[0]["user_id"] == "\x1b[31mann"


def test_a_token_is_revoked_by_its_id_or_its_text(data: Path) -> None:
    one, two = add(data, "ann"), add(data, "ann")
    assert run(data, "revoke", token_id_of(one)).stdout == f"Token {token_id_of(one)} is revoked.\n"
    assert run(data, "revoke", two).stdout == f"Token {token_id_of(two)} is revoked.\n"
    assert [entry["state"] for entry in listed(data)] == ["revoked", "revoked"]
    again = run(data, "revoke", token_id_of(one))
    assert (again.exit_code, again.stdout) == (0, f"Token {token_id_of(one)} was already revoked.\n")


def test_an_unknown_id_is_refused_with_a_suggestion(data: Path) -> None:
    token_id = token_id_of(add(data, "ann"))
    near = run(data, "revoke", token_id[:-1])
    assert (near.exit_code, near.stdout) == (2, "")
    assert f"no token has this id; did you mean {token_id}?" in near.stderr
    far = run(data, "revoke", "zzz")
    assert far.exit_code == 2
    assert "to see all ids, run memoryos-mcp token list" in far.stderr
    assert listed(data)[0]["state"] == "valid"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("ann", "--expires", "soon"), "this is not a valid duration or date; use a value like 12h, 30d, 4w or"),
        (("ann", "--expires", "2027-02-30"), "this is not a valid duration or date"),
        (("ann", "--expires", "2020-01-31"), "the time is in the past"),
        (("ann", "--expires", "0d"), "the time is in the past"),
        (("ann", "--expires", "999999w"), "is too far"),
        (("ann", "--expires", "9999-12-31"), "is too far"),
        (("ann", "--scope", "everything"), "'everything' is not one of"),
        ((" ",), "user_id: is blank"),
        (("a" * 10_001,), "user_id: is over 10,000 characters"),
    ],
)
def test_invalid_arguments_are_refused_and_make_no_token(arguments: tuple[str, ...], said: str, data: Path) -> None:
    result = run(data, "add", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert listed(data) == []


@pytest.mark.parametrize(
    ("text", "zone", "expected"),
    [
        ("12h", None, NOW + timedelta(hours=12)),
        (" 30D ", None, NOW + timedelta(days=30)),
        ("4w", None, NOW + timedelta(weeks=4)),
        ("2026-05-08", ZoneInfo("UTC"), datetime(2026, 5, 9, tzinfo=UTC)),
        ("2027-01-31", ZoneInfo("Asia/Tokyo"), datetime(2027, 1, 31, 15, tzinfo=UTC)),
    ],
)
def test_an_expiry_is_a_duration_or_the_last_day(text: str, zone: ZoneInfo | None, expected: datetime) -> None:
    assert expiry(text, now=NOW, zone=zone) == expected


@given(text=st.text(max_size=12) | st.from_regex(r"[0-9]{1,7}[hdwm]|[0-9]{4}-[0-9]{2}-[0-9]{2}", fullmatch=True))
def test_any_expiry_is_in_the_future_or_refused(text: str) -> None:
    for zone in (ZoneInfo("Pacific/Apia"), None):
        try:
            assert expiry(text, now=NOW, zone=zone) > NOW
        except click.BadParameter as error:
            assert "is " in error.message


def test_the_folder_can_come_from_a_file_or_the_environment(data: Path, tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"data_storage_path": str(data)}), encoding="utf-8")
    made = CliRunner().invoke(cli, ["token", "add", "ann", "--config", str(config)])
    assert made.exit_code == 0, made.output
    found = CliRunner().invoke(cli, ["token", "list", "--json"], env={"MEMORYOS_DATA_STORAGE_PATH": str(data)})
    assert json.loads(found.stdout)[0]["id"] == token_id_of(made.stdout.strip())


def test_damage_and_wrong_settings_have_the_usual_exit_codes(data: Path) -> None:
    def failing(*arguments: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "memoryos_mcp", "token", *arguments]
        done = subprocess.run(command, capture_output=True, timeout=LIMIT_S, env=clean_environment())
        return done.returncode, done.stderr.decode()

    data.mkdir()
    token_file(data).write_bytes(b"no database" * 1000)
    code, said = failing("list", "--data-storage-path", str(data))
    assert (code, "is damaged" in said, "Traceback" in said) == (1, True, False)
    code, said = failing("list", "--data-storage-path", " ")
    assert (code, "data_storage_path" in said, "Traceback" in said) == (2, True, False)
