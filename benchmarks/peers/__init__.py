"""Other memories, each driven as its own documentation describes: see `benchmarks.compare`.

Each adapter begins with inline script metadata: the Python version, the packages, and under ``[tool.peer]`` how the
peer is installed and started. A library's adapter runs in the peer's environment and answers like an MCP server
(`benchmarks.peers.library`). The adapter of an MCP server is its client and runs in the benchmark's environment
(`benchmarks.peers.driving`).
"""
