"""Benchmarks of retrieval quality and speed. Each figure is compared with a baseline or floor from the same run."""
