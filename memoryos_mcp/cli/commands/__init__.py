"""Implementation of the commands; `memoryos_mcp.cli.main` defines their names and options."""
