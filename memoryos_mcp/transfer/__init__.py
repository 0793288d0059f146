"""Exports and imports a memory. `importers` read the formats of other systems."""
