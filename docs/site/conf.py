"""The documentation site: see scripts/build_site.py, which assembles the pages before Sphinx reads them."""

from pathlib import Path

from lasthop import __version__

project = "Lasthop"
author = "The Lasthop developers"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
root_doc = "index"

# The anchors of headings are those that code hosts give them.
myst_heading_anchors = 6
myst_enable_extensions = ["colon_fence", "deflist"]
suppress_warnings = ["myst.header"]

# Names in docstrings stand in single backticks.
default_role = "code"
smartquotes = False

autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True

html_theme = "furo"
html_title = f"Lasthop {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
# Pages that are opened as files may not read other files, so that results could not show their text.
html_show_search_summary = False
html_search_scorer = str(Path(__file__).with_name("scorer.js"))
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1769c2", "color-brand-content": "#1558a5"},
    "dark_css_variables": {"color-brand-primary": "#62b0ff", "color-brand-content": "#7dbdff"},
}
