"""Editing the texts of clients' files: entries are added and removed, and no other byte changes."""

import json
import re
import tomllib
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from memoryos_mcp.cli.installer import jsonc, toml
from memoryos_mcp.cli.installer.catalogue import CLIENTS
from memoryos_mcp.errors import ClientFileError

FILES = Path(__file__).parent / "client_files"
ENTRY = {"command": "/opt/memory/bin/memoryos-mcp", "args": ["serve", "--user-id", 'ä "quoted" \\ name']}
PATH = ("mcpServers", "memoryos")


def real(name: str) -> str:
    (file,) = FILES.glob(f"{name}.*")
    return file.read_bytes().decode()


def with_line_ends(text: str, newline: str) -> str:
    return text.replace("\n", newline)


def is_grown_only(before: str, after: str) -> bool:
    """Return whether ``after`` contains all characters of ``before`` in order."""
    rest = iter(after)
    return all(char in rest for char in before)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("name", CLIENTS)
def test_removing_an_added_entry_restores_a_real_file(name: str, newline: str) -> None:
    client = CLIENTS[name]
    text, path = with_line_ends(real(name), newline), (*client.path, "memoryos")
    editor: Any = toml if client.form == "toml" else jsonc
    after = editor.with_member(text, path, ENTRY)
    held = editor.read(text)
    expected = {**held, path[0]: {**held.get(path[0], {}), "memoryos": ENTRY}}
    assert editor.read(after) == expected
    assert is_grown_only(text, after)
    assert after.count("\n") == after.count(newline)
    if path[0] in held and held[path[0]]:
        assert editor.without_member(after, path) == text
    else:  # a missing object is empty afterwards
        assert editor.read(editor.without_member(after, path)) == {**held, path[0]: {}}


def test_an_entry_is_indented_like_its_neighbours() -> None:
    after = jsonc.with_member(real("vscode"), ("servers", "memoryos"), ENTRY)
    assert '\t\t}, // the last one\n\t\t"memoryos": {\n\t\t\t"command": "/opt' in after
    assert after.endswith("\t\t},\n\t},\n}\n")
    minified = jsonc.with_member(real("cursor"), PATH, ENTRY)
    assert "\n" not in minified


def test_changing_a_middle_entry_keeps_its_neighbours() -> None:
    text = '{\n  "mcpServers": {\n    "a": {},\n    "memoryos": {"command": "old"}, // ours\n    "b": {}\n  }\n}\n'
    replaced = jsonc.with_member(text, PATH, ENTRY)
    assert json.loads(replaced.replace("// ours", ""))["mcpServers"] == {"a": {}, "memoryos": ENTRY, "b": {}}
    assert jsonc.without_member(text, PATH) == text.replace('\n    "memoryos": {"command": "old"},', "")
    first = '{"mcpServers": { "memoryos": 1, "b": 2 }}'
    assert jsonc.without_member(first, PATH) == '{"mcpServers": { "b": 2 }}'
    last = '{"mcpServers": {\n "a": 1, // one\n "memoryos": 2 }}'
    assert jsonc.read(jsonc.without_member(last, PATH)) == {"mcpServers": {"a": 1}}


@pytest.mark.parametrize("text", ["", "\n", "  \r\n", "{}", "{}\n", "// all\n{ /* none */ }\n", "{ // none\n}"])
def test_an_empty_text_gets_the_entry(text: str) -> None:
    assert jsonc.read(jsonc.with_member(text, PATH, ENTRY)) == {"mcpServers": {"memoryos": ENTRY}}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[]", "not a JSON object"),
        ("null", "not a JSON object"),
        ('{"mcpServers": []}', '"mcpServers" is not an object'),
        ('{"mcpServers": null}', '"mcpServers" is not an object'),
        ('{"mcpServers": {}, "mcpServers": {}}', '"mcpServers" occurs more than once'),
        ('{"mcpServers": {"memoryos": 1, "memoryos": 2}}', '"memoryos" occurs more than once'),
        ('{"a": 1', "line 1, column 8"),
        ('{\n  "a" 1\n}', "line 2, column 7"),
        ("{'a': 1}", "line 1, column 2"),
        ('{"a": 1}}', "line 1, column 9"),
        ('{"a": tru}', "not valid JSON"),
        ('{"a": "\n"}', "not valid JSON"),
        ('{"a": "\\x"}', "not valid JSON"),
        ("{,}", "not valid JSON"),
        ('{"a": 1 /* not ended', "not valid JSON"),
        ('{"a": ' + "[" * 5000 + "]" * 5000 + "}", "nested levels"),
    ],
)
def test_a_text_that_cannot_be_changed_is_an_error(text: str, told: str) -> None:
    with pytest.raises(ClientFileError, match=re.escape(told)):
        jsonc.with_member(text, PATH, ENTRY)
    with pytest.raises(ClientFileError, match=re.escape(told)):
        jsonc.without_member(text, PATH)


def test_parsing_a_long_text_needs_little_memory() -> None:
    text = json.dumps({"a": "x" * 1_000_000, "b": "\\" * 500_000}).replace("}", ",}")
    tracemalloc.start()
    try:
        after = jsonc.with_member(text, PATH, ENTRY)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert jsonc.without_member(after, PATH) != after
    assert most < 20 * len(text)


def test_duplicate_keys_elsewhere_are_ignored() -> None:
    text = '{"theme": 1, "theme": 2, "mcpServers": {"a": {"x": 1, "x": 2}}}'
    after = jsonc.with_member(text, PATH, ENTRY)
    assert is_grown_only(text, after)
    assert jsonc.without_member(after, PATH) == text


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers = { memoryos = { command = "x" } }\n',
        'mcp_servers.memoryos.command = "x"\n',
        '[mcp_servers]\nmemoryos = { command = "x" }\n',
        '[mcp_servers.memoryos]\ncommand = "x"\n[tui]\na = 1\n[mcp_servers.memoryos.env]\nA = "b"\n',
    ],
)
def test_toml_without_a_table_header_is_not_changed(text: str) -> None:
    path = ("mcp_servers", "memoryos")
    with pytest.raises(ClientFileError, match="not written as a single table"):
        toml.with_member(text, path, ENTRY)
    with pytest.raises(ClientFileError, match="not written as a single table"):
        toml.without_member(text, path)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("mcp_servers = {}\n", "by hand"),
        ("mcp_servers = 3\n", '"mcp_servers" is not a table'),
        ("a = \n", "not valid TOML"),
        ("a = 1\na = 2\n", "not valid TOML"),
    ],
)
def test_toml_that_cannot_be_changed_is_an_error(text: str, told: str) -> None:
    with pytest.raises(ClientFileError, match=told):
        toml.with_member(text, ("mcp_servers", "memoryos"), ENTRY)


def test_a_toml_table_is_removed_with_its_inner_tables() -> None:
    text = (
        'a = 1\n\n[mcp_servers.memoryos]\ncommand = "x"\n\n[mcp_servers.memoryos.env]\nA = "b"\n\n# of the next\n[b]\n'
    )
    path = ("mcp_servers", "memoryos")
    assert toml.without_member(text, path) == "a = 1\n\n# of the next\n[b]\n"
    after = toml.with_member(text, path, {"command": "y", "env": {"C": "d"}})
    assert after == 'a = 1\n\n[mcp_servers.memoryos]\ncommand = "y"\nenv = { C = "d" }\n\n# of the next\n[b]\n'


def test_a_toml_table_may_contain_times() -> None:
    times = "at = 2026-05-08T07:32:00.5Z\nday = 2026-05-08\nhour = 07:32:00\n"
    path = ("mcp_servers", "memoryos")
    entry = toml.read(times)
    after = toml.with_member("a = 1\n", path, {**ENTRY, **entry})
    assert tomllib.loads(after)["mcp_servers"]["memoryos"] == {**ENTRY, **entry}


calm = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
spaces = st.sampled_from(["", " ", "\n", "\n  ", "\r\n\t", " // note\n", "/* {,} */", '\n// "}\n    '])
names = st.sampled_from(["mcpServers", "memoryos", "a", 'q"\\', "ключ", "//", "{"])
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**6), 10**6),
    st.sampled_from(["", "x", '"', "\\", "//", "é", "😀", "\x7f"]),
)


@st.composite
def json_text(draw: st.DrawFn, depth: int = 3) -> str:
    """Return a value as JSON in the style of people."""

    def gap() -> str:
        return draw(spaces)

    kind = draw(st.sampled_from(["scalar", "object", "list"])) if depth < 3 else "object"
    if kind == "scalar" or depth == 0:
        return json.dumps(draw(scalars), ensure_ascii=draw(st.booleans()))
    inside, comma = json_text(depth - 1), draw(st.sampled_from(["", ","]))
    if kind == "list":
        items = [f"{gap()}{draw(inside)}{gap()}" for _ in range(draw(st.integers(0, 2)))]
        return f"[{','.join(items)}{comma if items else ''}{gap()}]"
    keys = draw(st.lists(names, max_size=3, unique=True))
    members = [f"{gap()}{json.dumps(key)}{gap()}:{gap()}{draw(inside)}{gap()}" for key in keys]
    return f"{{{','.join(members)}{comma if members else ''}{gap()}}}"


entries = st.fixed_dictionaries(
    {"command": st.text(max_size=20).filter(lambda text: text.isprintable())},
    optional={"args": st.lists(st.text(alphabet="ab \"\\'{}//\t", max_size=8), max_size=3)},
)


@calm
@given(before=spaces, text=json_text(), after=spaces, entry=entries)
def test_adding_to_any_json_text_keeps_other_bytes(
    before: str, text: str, after: str, entry: Mapping[str, Any]
) -> None:
    text = before + text + after
    held = jsonc.read(text)
    servers = held.get("mcpServers", {})
    assume(isinstance(servers, dict) and "memoryos" not in servers)
    grown = jsonc.with_member(text, PATH, entry)
    assert jsonc.read(grown) == {**held, "mcpServers": {**servers, "memoryos": entry}}
    assert is_grown_only(text, grown)
    back = jsonc.without_member(grown, PATH)
    assert jsonc.read(back) == {**held, "mcpServers": servers}
    if servers:
        assert back == text


lines = st.sampled_from(
    [
        "a = 1",
        "",
        "# [mcp_servers.memoryos]",
        'text = """\n[mcp_servers.memoryos]\n"""',
        "raw = '''\n[x]\n''''",
        "list = [\n  [1],\n  [2], # ]\n]",
        'inline = { b = "[x]" }',
        "[table]",
        "[[many]]",
        "[mcp_servers.other]",
        '[projects."/a [b]"]',
        'key = "#"',
    ]
)


@calm
@given(parts=st.lists(lines, max_size=8), entry=entries, newline=st.sampled_from(["\n", "\r\n"]), ends=st.booleans())
def test_removing_from_any_toml_text_restores_it(
    parts: Sequence[str], entry: Mapping[str, Any], newline: str, ends: bool
) -> None:
    text = with_line_ends("\n".join(parts) + ("\n" if ends else ""), newline)
    try:
        held = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        assume(False)
    grown = toml.with_member(text, ("mcp_servers", "memoryos"), entry)
    assert tomllib.loads(grown) == {**held, "mcp_servers": {**held.get("mcp_servers", {}), "memoryos": entry}}
    assert grown.startswith(text)
    assert toml.without_member(grown, ("mcp_servers", "memoryos")) == text


def test_removing_a_missing_entry_changes_nothing() -> None:
    changes: list[tuple[Callable[..., str], str, tuple[str, ...]]] = [
        (jsonc.without_member, '{ "a": 1, }', PATH),
        (jsonc.without_member, "", PATH),
        (toml.without_member, "a = 1", ("mcp_servers", "memoryos")),
    ]
    for change, text, path in changes:
        assert change(text, path) == text
