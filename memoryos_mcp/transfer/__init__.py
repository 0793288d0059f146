"""Transfer: export and import of a memory, and the importers of other systems' formats."""
