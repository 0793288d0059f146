"""The installer for MCP clients: the places of their files, the form of entries, and changes of the files.

Raises `ClientFileError` if a file cannot be read or changed, and leaves the file unchanged. Raises `ArgumentError` if a
client does not support a request.
"""
