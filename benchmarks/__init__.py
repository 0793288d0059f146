"""Benchmarks: what the server finds and how fast, each figure beside a baseline or floor of the same run."""
