import re
from pathlib import Path, PureWindowsPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryos_mcp.errors import ArgumentError
from memoryos_mcp.storage.sqlite.paths import database_file
from memoryos_mcp.text.user_ids import USER_ID_MAX_CHARS, user_folder_name

ROOT = Path("/data")
RESERVED = {"con", "prn", "aux", "nul", *(f"{name}{digit}" for name in ("com", "lpt") for digit in range(10))}
# In addition to any text: ids that look like paths, devices and folder names of this module.
NASTY = st.text(alphabet="aAbB./\\~-_: 0\u0130iI\u0131\ufb01é\u0301\U0001f600", min_size=1, max_size=12)
MADE = st.from_regex(r"[a-z0-9-]{1,8}~[0-9a-f]{24}", fullmatch=True)
USER_IDS = st.one_of(
    st.text(min_size=1, max_size=300),
    NASTY,
    MADE,
    st.sampled_from(sorted(RESERVED)),
    st.sampled_from(["..", ".", "../../x", "/etc/passwd", "C:\\x", "\\\\host\\share", "con.txt", "x" * 300, "😀" * 99]),
).filter(lambda text: bool(text.strip()) and not re.search("[\x00\ud800-\udfff]", text))


@given(USER_IDS)
def test_each_user_id_has_a_folder_right_below_users(user_id: str) -> None:
    file = database_file(ROOT, user_id)
    assert file.parent.parent == ROOT / "users"
    assert file.resolve() == file
    assert file == database_file(ROOT, user_id)


@given(USER_IDS)
def test_a_folder_name_is_safe_on_every_file_system(user_id: str) -> None:
    name = user_folder_name(user_id)
    assert re.fullmatch(r"[a-z0-9_-]+(~[0-9a-f]{24})?", name)
    assert len(name.encode()) <= 100
    assert name not in RESERVED
    assert PureWindowsPath(name).name == name
    assert not PureWindowsPath(name).drive


@given(USER_IDS, USER_IDS)
def test_two_users_never_share_a_folder_whatever_their_case(one: str, other: str) -> None:
    if one != other:
        assert user_folder_name(one).casefold() != user_folder_name(other).casefold()


@given(USER_IDS)
def test_the_variants_of_an_id_have_folders_of_their_own(user_id: str) -> None:
    cases = {user_id, user_id.upper(), user_id.lower(), user_id.swapcase()}
    variants = {*cases, f"{user_id} ", f" {user_id}", f"{user_id}."}
    assert len({user_folder_name(variant).casefold() for variant in variants}) == len(variants)


@given(USER_IDS)
def test_no_id_can_take_the_folder_of_another_id(user_id: str) -> None:
    name = user_folder_name(user_id)
    if name != user_id:
        assert user_folder_name(name) != name


def test_a_plain_id_is_its_own_folder_name() -> None:
    assert user_folder_name("ana-2_b") == "ana-2_b"


@pytest.mark.parametrize("user_id", ["", " \t\n", "a\x00b", "a\ud800", "x" * (USER_ID_MAX_CHARS + 1)])
def test_an_id_that_cannot_name_a_user_is_refused_by_name(user_id: str) -> None:
    with pytest.raises(ArgumentError, match=r"^user_id: "):
        user_folder_name(user_id)
