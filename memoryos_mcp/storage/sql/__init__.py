"""The parts of a store that every SQL database shares: tables of a memory, and all changes to them."""
