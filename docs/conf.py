"""How the site is built: `sphinx-build docs site`. The pages are plain Markdown, which a code host shows as well."""

from importlib.metadata import version as version_of

project = "memoryos-mcp-server"
author = "the authors of memoryos-mcp-server"
release = version = version_of("memoryos-mcp-server")

extensions = ["myst_parser", "sphinx_copybutton"]
source_suffix = {".md": "markdown"}
exclude_patterns: list[str] = []
myst_heading_anchors = 4
# Quotes and dashes stay as they are typed: they stand in commands and settings.
smartquotes = False

html_theme = "furo"
html_title = "memoryos"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
# Comments and prompts are not copied along.
copybutton_exclude = ".linenos, .gp"
