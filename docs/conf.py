"""How Sphinx makes the site of these pages: `make docs`. Nothing is fetched, while it is built or when it is read."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(HERE))

from spkbase.version import __version__  # noqa: E402

project = "spkver"
author = "The spkver developers"
copyright = "The spkver developers, Apache-2.0"
version = release = __version__
language = "en-GB"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_design",
    "sphinx_copybutton",
    "site_extension",
]

# The source is the whole checkout, so that links between pages are the same here and in the files.
root_doc = "docs/index"
PAGES = {"docs", "recipes", "CHANGELOG.md", "CONTRIBUTING.md"}
include_patterns = ["docs/**", "recipes/*/README.md", "CHANGELOG.md", "CONTRIBUTING.md"]
exclude_patterns = [
    *sorted(entry.name for entry in ROOT.iterdir() if entry.name not in PAGES),
    "docs/_*",
    "**/.*",
]
default_role = "code"
highlight_language = "none"

myst_enable_extensions = ["dollarmath", "deflist", "colon_fence", "attrs_block"]
myst_heading_anchors = 4
myst_dmath_double_inline = True

# The lessons are run while the site is built, in an empty folder; an error ends the build.
nb_execution_mode = "cache"
nb_execution_cache_path = str(ROOT / "build" / "notebooks")
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_execution_show_tb = True
nb_merge_streams = True
os.environ["TQDM_DISABLE"] = "1"  # pages show no progress bars
logging.getLogger("traitlets").setLevel(logging.ERROR)  # which says of each lesson that it is run

autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 88
python_use_unqualified_type_names = True
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True

html_theme = "furo"
html_title = "spkver"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_show_sphinx = False
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1f5f99", "color-brand-content": "#1f5f99"},
    "dark_css_variables": {"color-brand-primary": "#7db8ee", "color-brand-content": "#7db8ee"},
}
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True
