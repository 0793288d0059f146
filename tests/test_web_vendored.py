"""The static files of the pages: which are of others, in which version, and under which licence."""

import hashlib
import json
import re

from memoryos_mcp.server.web.visits import STATIC_FOLDER

LIST = STATIC_FOLDER / "vendored.json"
OWN = {"style.css", "page.js", "icon.svg", LIST.name}
KEYS = {"file", "name", "version", "licence", "licence_file", "source", "sha256"}
ENTRIES = json.loads(LIST.read_text(encoding="utf-8"))


def test_files_of_others_are_listed_with_version_licence_and_hash() -> None:
    for entry in ENTRIES:
        assert set(entry) == KEYS
        content = (STATIC_FOLDER / entry["file"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == entry["sha256"], entry["file"]
        assert entry["version"] in entry["source"]
        assert entry["version"].encode() in content
        assert "Permission to use, copy, modify" in (STATIC_FOLDER / entry["licence_file"]).read_text(encoding="utf-8")


def test_there_are_no_other_files_of_others() -> None:
    """`test_distribution` shows that the wheel has all of them, so also the licences."""
    listed = {entry[key] for entry in ENTRIES for key in ("file", "licence_file")}
    assert {path.name for path in STATIC_FOLDER.iterdir()} == OWN | listed


def test_our_own_static_files_name_no_address_of_others() -> None:
    for name in OWN - {LIST.name}:
        text = (STATIC_FOLDER / name).read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?:|//[a-z0-9-]+\.[a-z]|@import|url\(", text), name
        assert max(map(len, text.splitlines())) < 400, "a file of ours is not minified"
