"""How Sphinx builds this folder into a site: ``make docs`` writes it to ``out/docs``."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # autodoc imports the packages of this checkout

project = "Trainyard"
author = "The Trainyard authors"
copyright = author  # the footer; Sphinx prescribes the name
release = "0.1.0"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["examples"]

# Markdown: headings down to the fourth level are link targets, as on the pages that a code host shows.
myst_heading_anchors = 4

# API reference: docstrings in Google style, types from the signatures.
napoleon_numpy_docstring = False
napoleon_use_ivar = True  # fields of named tuples are documented once
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True}
python_use_unqualified_type_names = True
add_module_names = False

html_theme = "furo"
html_title = "Trainyard"
html_theme_options = {
    "source_directory": "docs/",
    "top_of_page_buttons": [],
}
highlight_language = "none"
