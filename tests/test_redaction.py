"""Secrets are left out of what is stored, whatever stands around them, and nothing else is."""

import asyncio
import hashlib
import json
import random
import re
import time
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.drawing import card_number, drawn
from benchmarks.everyday_secrets import planted, recovery_codes
from benchmarks.secret_keys import checked_token, jwt, near_misses, private_key, secrets_of
from memoryos_mcp.config import Settings
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.errors import ArgumentError
from memoryos_mcp.model.pages import Turn, utc_now
from memoryos_mcp.model.redaction import redact_turn
from memoryos_mcp.text.secrets import placeholder, redact
from memoryos_mcp.text.secrets.checks import base62_crc32, has_crc32, has_luhn
from memoryos_mcp.text.secrets.patterns import PATTERNS
from tests.memories import NO_MODEL
from tests.servers import PipeServer

LIMIT_S = 60
SEEDS = range(20)
KINDS = sorted({kind for kind, _ in secrets_of(random.Random(0))})  # noqa: S311 - made-up data
EVERYDAY = sorted({text.kind for text in (*planted(random.Random(0)), recovery_codes(random.Random(0)))})  # noqa: S311
LOOKALIKES = sorted({what for what, _ in near_misses(random.Random(0))})  # noqa: S311


def chance(seed: int = 1) -> random.Random:
    return random.Random(seed)  # noqa: S311 - made-up data


def turn(user_input: str = "hi", agent_response: str = "hello", **more: Any) -> Turn:
    return Turn(user_input, agent_response, utc_now(), **more)


@pytest.mark.parametrize("kind", KINDS)
def test_a_secret_of_every_kind_is_left_out_and_named(kind: str) -> None:
    for seed in SEEDS:
        for secret in (secret for made, secret in secrets_of(chance(seed)) if made == kind):
            clean = redact(f"Use {secret} from now on.")
            assert placeholder(kind.partition(" (")[0]) in clean.text, secret[:6]
            assert clean.kinds


def test_the_words_of_seed_phrases_are_those_of_the_standard() -> None:
    words = files("memoryos_mcp.text.secrets").joinpath("bip39_english.txt").read_bytes()
    known = "2f5eed53a4727b4bf8880d8f3f199efc90e58503646d9ff8eff3a2ed3b24dbda"
    assert hashlib.sha256(words).hexdigest() == known


def test_every_pattern_is_measured() -> None:
    measured = {kind.partition(" (")[0] for kind in (*KINDS, *EVERYDAY)}
    assert {pattern.kind for pattern in PATTERNS} <= measured


@pytest.mark.parametrize("kind", EVERYDAY)
def test_an_everyday_secret_is_left_out_and_all_around_it_stays(kind: str) -> None:
    for seed in SEEDS:
        for text in (*planted(chance(seed)), recovery_codes(chance(seed))):
            if text.kind == kind:
                assert redact(text.text).text == text.clean, text.text


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("**Password:** Tr0ub4dor&3", "**Password:** §"),
        ("| password | hunter22 |", "| password | § |"),
        ("<password>opensesame</password>", "<password>§</password>"),
        ("my wifi password (kittens99)", "my wifi password (§)"),
        ("password: swordfish", "password: §"),
        ("my password is correcthorse", "my password is §"),
        ("I changed my password to Winter2025!", "I changed my password to §"),
        ("my new password will be Zebra!99", "my new password will be §"),
        ("login: joe pw: hunter22", "login: joe pw: §"),
        ("machine api.example.com login joe password s3cr3tpw", "machine api.example.com login joe password §"),
        ("DB_PASS=letmein", "DB_PASS=§"),
        ("ansible_become_pass: rootme123", "ansible_become_pass: §"),
        ("curl -u admin:hunter2 https://example.com", "curl -u admin:§ https://example.com"),
        ("sshpass -p hunter2 ssh root@10.0.0.1", "sshpass -p § ssh root@10.0.0.1"),
        ("mysql -u root -pS3cret mydb", "mysql -u root -p§ mydb"),
        ("Mijn wachtwoord is Fietsbel12", "Mijn wachtwoord is §"),
        ("Moje hasło to Kotek123", "Moje hasło to §"),
        ("Şifrem Kedi1234", "Şifrem §"),
        ("كلمة المرور هي Qamar2024", "كلمة المرور هي §"),
        ("मेरा पासवर्ड Dilli2024 है", "मेरा पासवर्ड § है"),
        ("Mein Passwort lautet Sommer2024!", "Mein Passwort lautet §"),
    ],
)
def test_a_password_is_told_by_what_stands_around_it(text: str, clean: str) -> None:
    assert redact(text).text.replace(placeholder("password"), "§").rstrip("!") == clean


@pytest.mark.parametrize(
    "secret",
    [
        "legal winner thank year wave sausage worth useful legal winner thank yellow",
        "xprv9s21ZrQH143K3QTDL4LXw2F7HEK3wJUD2nW2nRk4stbPy6cq3jPPqjiChkVvvNKmPGJxWUtg6LnF5kejMRNNU3TGtRBeJgk33yuGBxrMPHi",
        "5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTJ",
        "4111.1111.1111.1111",
        "DE89 3704 0044 0532 0130 00",
    ],
)
def test_what_others_publish_as_an_example_of_a_secret_is_left_out(secret: str) -> None:
    assert secret not in redact(f"It is {secret}, keep it.").text


@pytest.mark.parametrize(
    "text",
    [
        "My password manager is Bitwarden.",
        "My password is too weak.",
        "My password is the same everywhere",
        "I changed my password to a stronger one.",
        "Set the password to something strong.",
        "password: required",
        "password: str",
        "password: see the note",
        "password = getpass()",
        'os.environ["DB_PASS"]',
        "DB_PASS=${DB_PASS}",
        "<password>your-password</password>",
        'PASSWORD = "PASSWORD"',
        "| password | string | required |",
        "| Password | Description |",
        "curl -u user:password https://example.com",
        "The PIN is on the back of the card.",
        "Wachtwoord vergeten",
        "Hasło jest za krótkie.",
        "Mein Passwort ist abgelaufen.",
        "zero one one zero zero one one zero one one one zero",
        "one zero zero one one one zero one zero zero one one",
    ],
)
def test_what_is_said_of_a_password_stays(text: str) -> None:
    assert redact(text).kinds == ()


@pytest.mark.parametrize("what", LOOKALIKES)
def test_what_looks_like_a_secret_and_is_none_stays(what: str) -> None:
    for seed in range(100):
        (text,) = (text for made, text in near_misses(chance(seed)) if made == what)
        assert redact(f"See {text}, please.").kinds == ()


@pytest.mark.parametrize(
    "around",
    [
        "{}",
        "{}.",
        "({})",
        '"{}"',
        "'{}'",
        "`{}`",
        "```\nTOKEN={}\n```",
        '{{"token": "{}"}}',
        "https://example.com/?token={}&page=2",
        "令牌是{}，谢谢",
        "ключ:{}!",
        "🔑{}🔑",
        "İ {} İ",
        "- {}\n- second",
    ],
)
def test_a_secret_is_found_whatever_stands_around_it(around: str) -> None:
    token = checked_token("ghp", chance())
    assert redact(around.format(token)).text == around.format("[redacted: github token]")


def test_a_token_within_a_longer_word_is_no_token() -> None:
    assert redact(f"x{checked_token('npm', chance())}").kinds == ()


def test_the_checksum_is_that_of_the_documented_example() -> None:
    # The example with which the format was published; it opens nothing.
    example = "ghp_" + "zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ" + "0mLq17"
    assert has_crc32(example)
    assert not has_crc32(example[:-1] + "8")


def test_a_good_checksum_makes_a_token_of_what_was_never_drawn_and_a_bad_one_does_not() -> None:
    body = "a" * 30
    assert redact("ghp_" + "a" * 36).kinds == ()
    assert redact(f"ghp_{body}{base62_crc32(body)}").kinds == ("github token",)


def test_a_mistyped_token_is_left_out_as_well() -> None:
    token = checked_token("ghp", chance())
    wrong = token[:-1] + ("0" if token[-1] != "0" else "1")
    assert redact(wrong).kinds == ("github token",)


@given(st.text("0123456789", min_size=2, max_size=30))
def test_one_wrong_digit_never_passes_luhn(digits: str) -> None:
    good = next(digits + str(last) for last in range(10) if has_luhn(digits + str(last)))
    for place in range(len(good)):
        wrong = good[:place] + str((int(good[place]) + 3) % 10) + good[place + 1 :]
        assert not has_luhn(wrong)


def test_a_number_is_a_cards_only_with_an_issuer_a_length_and_a_check_digit() -> None:
    number = card_number(chance())
    assert redact(f"my card: {number}, thanks").kinds == ("card number",)
    assert redact(f"card {number[:-1]}{(int(number[-1]) + 1) % 10}").kinds == ()
    assert redact(f"card {card_number(chance(), '9')}").kinds == ()
    assert redact(f"card 00{number}").kinds == ()
    assert redact(f"{number[:4]} {number[4:8]}-{number[8:]}").kinds == ()
    grouped = card_number(chance(), "53", separator=" ")
    assert redact(f"I have 5 {number}").kinds == ("card number",)
    assert redact(f"my card {grouped}.").kinds == ("card number",)
    assert redact(f"IBAN DE89 {grouped} 00").kinds == ()


def test_a_private_key_is_left_out_whole_cut_off_and_as_json() -> None:
    block = private_key(chance())
    half = len(block) // 2
    first, second = block[:half], block[half:]
    assert redact(f"Here:\n{block}\nThanks!").text == "Here:\n[redacted: private key]\nThanks!"
    assert redact(f"Here:\n{first}").text == "Here:\n[redacted: private key]"
    assert redact(f"{second}\nThanks!").text == "[redacted: private key]\nThanks!"
    service_account = json.dumps({"type": "service_account", "private_key": block + "\n"})
    clean = json.loads(redact(service_account).text)
    assert clean["private_key"].startswith("[redacted: private key]")
    assert clean["type"] == "service_account"


def test_a_key_that_is_split_between_the_two_sides_is_left_out_of_both() -> None:
    block = private_key(chance())
    half = len(block) // 2
    clean = redact_turn(turn(block[:half], block[half:]), "redact")
    assert clean.kinds == ("private key", "private key")
    assert (clean.turn.user_input, clean.turn.agent_response) == ("[redacted: private key]",) * 2


def test_talk_about_keys_stays() -> None:
    said = "A PEM file begins with -----BEGIN PRIVATE KEY----- and ends with -----END PRIVATE KEY-----, you know."
    assert redact(said).text == said


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("My password is hunter2.", "My password is [redacted: password]"),
        (
            "the password for the wifi at home is Fjord-2291",
            "the password for the wifi at home is [redacted: password]",
        ),
        ("Passwort lautet Sommer2024", "Passwort lautet [redacted: password]"),
        ("пароль: Qwerty123", "пароль: [redacted: password]"),
        ("密码是abc123xyz，谢谢", "密码是[redacted: password]"),
        ('{"password": "tr0ub4dor&3"}', '{"password": "[redacted: password]"}'),
        ("postgres://bob:s3cr3tpw@db/x", "postgres://bob:[redacted: password in a URL]@db/x"),
        ("mongodb://bob:p@ss1@db/x", "mongodb://bob:[redacted: password in a URL]@db/x"),
    ],
)
def test_passwords_are_told_by_what_stands_before_them(said: str, kept: str) -> None:
    assert redact(said).text.startswith(kept[:-1])
    assert redact(said).kinds


@pytest.mark.parametrize(
    "said",
    [
        "My password is too short.",
        "The password is required!",
        "password: str",
        "password = request.form['password']",
        'password = "mysecretpassword"',
        "password=hash_password(password1)",
        "PWD=/home/ada1/project",
        "Hashed password: pbkdf2:sha256:260000$zL6yRjZt$5b7c",
        "http://user:password@localhost:8080/",
        "http://localhost:8080/path@2x.png",
        "SECRET_KEY = os.environ['SECRET_KEY']",
        "the primary key: order_2024_line_00017_item",
        "xoxb-your-slack-token",
        "basic information about the programme",
    ],
)
def test_talk_and_code_about_passwords_stay(said: str) -> None:
    assert redact(said).text == said


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(st.text(max_size=30), st.integers(0, 10_000)), max_size=8), st.integers(0, 1000))
def test_redacting_again_changes_nothing(parts: list[str | int], seed: int) -> None:
    made = [secret for _, secret in secrets_of(chance(seed))]
    text = " ".join(part if isinstance(part, str) else made[part % len(made)] for part in parts)
    clean = redact(text)
    assert redact(clean.text).text == clean.text
    assert redact(clean.text).kinds == ()
    assert bool(clean.kinds) == (clean.text != text)


_HOSTILE = [
    "-----BEGIN PRIVATE KEY-----\n",
    "-----END PRIVATE KEY-----",
    "A" * 64 + "\n",
    "eyJhbGciOiJI.eyJ",
    "://a:",
    "://a:b@",
    "password is ",
    "password for password for ",
    "aws secret access ",
    "sk-" * 7,
    "ghp_",
    "glpat-aaaaaaaaaaaaaaaaaaaa.",
    "4111 ",
    "4111-1111-1111-",
    "token=token=",
    "api_key = 'aaaaaaaaaaaaaaaaaaaa",
    "MTIzNDU2Nzg5MDEyMzQ1Njc4.",
    "x" * 50,
    "heroku twilio mailgun bearer basic ",
    "abandon ",
    "able, ",
    "<password>",
    "| password ",
    "1. ",
    "backup codes ",
    "iban ",
    "pw:",
    "İ",
]


@pytest.mark.parametrize("piece", _HOSTILE)
def test_time_grows_in_proportion_to_the_length(piece: str) -> None:
    def shortest_s(chars: int) -> float:
        text = piece * (chars // len(piece)) + "!"
        times = []
        for _ in range(3):
            began = time.thread_time()  # its own work, whatever else the machine does
            redact(text)
            times.append(time.thread_time() - began)
        return min(times)

    # In proportion it is 8 times; were it the square, 64 times.
    assert shortest_s(40_000) < 30 * max(shortest_s(5_000), 1e-3)


def test_meta_data_is_looked_through_its_keys_values_and_numbers() -> None:
    token, card = checked_token("ghp", chance()), card_number(chance())
    given = {
        token: 1,
        "note": f"uses {token}",
        "list": [{"card": int(card)}],
        "password": "tr0ub4dor&3",
        "n": 7,
        "y": True,
    }
    clean = redact_turn(turn(meta_data=json.dumps(given)), "redact")
    assert clean.kinds == ("github token", "github token", "card number", "password")
    assert json.loads(clean.turn.meta_data or "") == {
        "[redacted: github token]": 1,
        "note": "uses [redacted: github token]",
        "list": [{"card": "[redacted: card number]"}],
        "password": "[redacted: password]",
        "n": 7,
        "y": True,
    }


def test_two_names_that_were_secrets_stay_two() -> None:
    given = {checked_token("ghp", chance(1)): 1, checked_token("ghp", chance(2)): 2}
    clean = json.loads(redact_turn(turn(meta_data=json.dumps(given)), "redact").turn.meta_data or "")
    assert sorted(clean.values()) == [1, 2]


def test_a_turn_without_secrets_is_the_same_turn() -> None:
    plain = turn("I like tea.", "Noted.", meta_data='{"a":  1}', idempotency_key="k")
    assert redact_turn(plain, "redact").turn is plain


@pytest.mark.parametrize("argument", ["user_input", "agent_response", "meta_data"])
def test_with_reject_the_error_names_argument_and_kind_and_not_the_secret(argument: str) -> None:
    token = checked_token("npm", chance())
    text = json.dumps({"t": token}) if argument == "meta_data" else f"It is {token}"
    with pytest.raises(ArgumentError) as caught:
        redact_turn(turn(**{argument: text}), "reject")
    assert caught.value.argument == argument
    assert "npm token" in str(caught.value)
    assert token not in str(caught.value)


@pytest.mark.parametrize("policy", ["redact", "reject"])
def test_a_secret_in_an_idempotency_key_is_refused(policy: Any) -> None:
    token = checked_token("ghp", chance())
    with pytest.raises(ArgumentError, match=r"idempotency_key: .*github token") as caught:
        redact_turn(turn(idempotency_key=token), policy)
    assert token not in str(caught.value)


def test_with_off_a_turn_stays_as_it_is() -> None:
    given = turn(checked_token("ghp", chance()), idempotency_key=jwt(chance()))
    assert redact_turn(given, "off").turn is given


async def test_queries_are_redacted_before_they_are_embedded(tmp_path: Path) -> None:
    token = checked_token("ghp", chance())
    for policy, is_found in (("redact", False), ("reject", False), ("off", True)):
        asked = Settings(data_storage_path=tmp_path / policy, secret_policy=policy, **NO_MODEL)  # type: ignore[arg-type]
        async with asyncio.timeout(LIMIT_S), MemoryService(asked) as service, service.user("ada") as engine:
            await engine.add("We spoke of tokens.", "Yes.")
            recall = await engine.retrieve(f"what was {token}")
            assert (token.lower() in repr(recall.asked).lower()) == is_found


async def test_a_long_page_is_looked_through_as_well(tmp_path: Path) -> None:
    asked = Settings(data_storage_path=tmp_path, **NO_MODEL)
    async with asyncio.timeout(LIMIT_S), MemoryService(asked) as service, service.user("ada") as engine:
        receipt = await engine.add("word " * 50_000 + checked_token("ghp", chance()), "")
        assert receipt.redacted == ("github token",)


def test_no_file_and_no_log_of_a_server_holds_the_secret(data: Path) -> None:
    draw = chance(5)
    token, card, word = checked_token("ghp", draw), card_number(draw), drawn(draw, "abcdefghjkmnpqrstuvwxyz", 9) + "77"
    asked = {"log_level": "DEBUG", "short_term_capacity": 0, "consolidation_batch_pages": 1, "consolidation_idle_s": 0}
    with PipeServer(data, asked) as server:
        reply = server.call(
            "add_memory",
            user_input=f"My token is {token}, my password is {word}.",
            agent_response=f"And your card is {card}?",
            meta_data={"token": token},
        )
        assert reply["redacted"] == ["github token", "password", "card number", "github token"]
        refusal = server.refusal("add_memory", user_input="x", agent_response="", idempotency_key=token)
        assert "github token" in refusal
        assert token not in refusal
        server.call("retrieve_memory", query=f"what was {token}?", explain=True)
        server.wait_until_settled()
        log = server.stderr
    parts = [part.encode() for part in (token, card, word, token[10:30], card[4:])]
    files = [path for path in data.rglob("*") if path.is_file()]
    assert files
    for part in parts:
        assert all(part.lower() not in path.read_bytes().lower() for path in files)
        assert part.decode() not in log


def test_with_reject_a_server_refuses_the_page_and_stores_nothing(data: Path) -> None:
    token = checked_token("ghp", chance())
    with PipeServer(data, {"secret_policy": "reject", **NO_MODEL}) as server:
        refusal = server.refusal("add_memory", user_input=f"It is {token}", agent_response="")
        assert re.match(r"user_input: holds a secret \(github token\)", refusal)
        assert token not in refusal
        assert server.stats()["total_pages"] == 0
