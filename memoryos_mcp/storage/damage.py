"""Texts about damaged pages for error messages and reports."""

IDS_NAMED = 5
# These steps preserve pages that are newer than the backup: the import adds them, and does not change existing pages.
DAMAGE_FIX = (
    "run memoryos-mcp export FILE to save newer pages, memoryos-mcp restore BACKUP --yes to restore your backup, and "
    "memoryos-mcp import FILE to add the newer pages"
)


def damage_message(page_ids: tuple[str, ...]) -> str:
    """Return a message that states the number of damaged pages and the first few of their ids."""
    more = ", ..." if len(page_ids) > IDS_NAMED else ""
    are = "page is" if len(page_ids) == 1 else "pages are"
    return f"{len(page_ids):,} {are} damaged on disk ({', '.join(page_ids[:IDS_NAMED])}{more})"
