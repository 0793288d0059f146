"""The parts of a store that all SQL databases share: the tables of a memory, and all changes to them."""
