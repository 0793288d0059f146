"""Programs that use the recipes of docs/frameworks.md, each in the environment of its framework."""
