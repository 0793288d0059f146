"""Transfer: export and import of a memory, and the importers for the formats of other systems."""
