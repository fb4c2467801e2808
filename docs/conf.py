"""Sphinx's settings for the site. `make docs` builds it from a copy of the tree (docs/build.py): the pages lie where they are read in a checkout."""

project = "samzapy"
root_doc = "docs/site"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
include_patterns = ["README.md", "docs/**.md", "jobs/README.md", "config/REFERENCE.md", "samzapy/*.md"]
myst_heading_anchors = 3
suppress_warnings = [
    "myst.xref_missing",  # links to folders, which a checkout has and a site has not; tests/jobs/test_pages.py checks that they are there
    "myst.xref_ambiguous",  # the same, where a folder has the name of a module
    "myst.header",  # pages whose headings begin lower than others
    "misc.highlighting_failure",  # examples with an ellipsis
]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_google_docstring = True
html_theme = "alabaster"  # comes with Sphinx: nothing is fetched when the site is read
html_theme_options = {"description": "Stream processing in Python on Kafka", "page_width": "1100px", "sidebar_width": "260px", "fixed_sidebar": False}
html_sidebars = {"**": ["about.html", "searchbox.html", "navigation.html"]}
html_show_sourcelink = False
html_copy_source = False
