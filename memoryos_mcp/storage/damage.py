"""What users are told about damaged pages."""

IDS_NAMED = 5
# Pages newer than the backup are kept: the import adds them and leaves existing pages unchanged.
DAMAGE_FIX = (
    "memoryos-mcp export FILE takes along what is newer than your backup, memoryos-mcp restore BACKUP --yes puts that "
    "in place, and memoryos-mcp import FILE adds what is newer"
)


def damage_message(page_ids: tuple[str, ...]) -> str:
    """Return a message with the number of damaged pages and the first ids."""
    more = ", ..." if len(page_ids) > IDS_NAMED else ""
    are = "page is" if len(page_ids) == 1 else "pages are"
    return f"{len(page_ids):,} {are} damaged on disk ({', '.join(page_ids[:IDS_NAMED])}{more})"
