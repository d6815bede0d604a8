"""How the documentation site is built; `make docs` does it.

Sphinx, because it is maintained, runs the examples while it builds (sphinx-gallery), reads the
docstrings as they are, and fetches nothing: pages have no font, script or formula from elsewhere.
"""

from __future__ import annotations

import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "_extensions"))

from fdrsvm import __version__  # noqa: E402

project = "FDR-SVM"
author = "The FDR-SVM developers"
copyright = author  # noqa: A001
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
    "equation_tags",
    "local_paths",
    "docstrings",
]
exclude_patterns = ["_*", "reproduction/**"]
suppress_warnings = [
    "myst.header",  # equations are headings of the third level wherever they stand
    "config.cache",  # sphinx-gallery's configuration holds functions
]
highlight_language = "none"  # what is indented is a formula or a command
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say it in words
autosummary_generate = False
napoleon_google_docstring = False
napoleon_custom_sections = [("Attributes", "params_style")]
napoleon_use_rtype = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "example_order.ExampleOrder",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "min_reported_time": 3600,  # s; how long a build took is no part of the page
    "write_computation_times": False,
}

html_theme = "furo"
html_title = f"FDR-SVM {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1f5f8b", "color-brand-content": "#1f5f8b"},
    "dark_css_variables": {"color-brand-primary": "#8ab6d6", "color-brand-content": "#8ab6d6"},
}
