"""The translation of the shared SQL to PostgreSQL."""

import pytest

from memoryos_mcp.model.pages import Tier
from memoryos_mcp.storage.postgres.dialect import translate, values


@pytest.mark.parametrize(
    ("sql", "translated", "keys"),
    [
        ("SELECT ?, ?", "SELECT $1, $2", (0, 1)),
        ("SELECT ?2, ?2, ?", "SELECT $1, $1, $2", (1, 2)),
        ("SELECT ?, ?4, ?", "SELECT $1, $2, $3", (0, 3, 4)),
        ("SELECT :last WHERE a = 'is it? :no'", "SELECT $1 WHERE a = 'is it? :no'", ("last",)),
        ("SELECT 'it''s ?' || ?", "SELECT 'it''s ?' || $1", (0,)),
        ("SELECT json_group_array(seq)", "SELECT coalesce(CAST(json_agg(seq) AS text), '[]')", ()),
        ("SELECT CAST(source AS BLOB)", "SELECT convert_to(source, 'UTF8')", ()),
        ("SELECT ?1 IS NULL OR a = ?1", "SELECT CAST($1 AS text) IS NULL OR a = $1", (0,)),
        ("INSERT ON CONFLICT (key) DO NOTHING", "INSERT ON CONFLICT (user_no, key) DO NOTHING", ()),
        (
            "seq IN (SELECT value FROM json_each(?))",
            "seq = ANY(ARRAY(SELECT CAST(value AS bigint) FROM json_array_elements_text(CAST($1 AS json))))",
            (0,),
        ),
        (
            "slot NOT IN (SELECT CAST(value AS TEXT) FROM json_each(?2))",
            "slot <> ALL(ARRAY(SELECT CAST(value AS TEXT) FROM json_array_elements_text(CAST($1 AS json))))",
            (1,),
        ),
    ],
)
def test_statements_are_translated(sql: str, translated: str, keys: tuple[int | str, ...]) -> None:
    assert translate(sql) == (translated, keys)


def test_parameters_have_the_types_of_the_columns() -> None:
    found = values((0, 1, 0), [Tier.BACKLOG, True])
    assert found == ["backlog", 1, "backlog"]
    assert [type(value) for value in found] == [str, int, str]
