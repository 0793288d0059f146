"""What the command line does, a module or a folder for each command; `cli` says what they are called and take."""
