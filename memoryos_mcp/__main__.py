"""``python -m memoryos_mcp`` is the command ``memoryos-mcp``."""

from memoryos_mcp.cli import main

if __name__ == "__main__":
    main()
