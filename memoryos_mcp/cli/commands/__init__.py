"""Implementation of the commands, one module or folder each; `cli` defines their names and options."""
