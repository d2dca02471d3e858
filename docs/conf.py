"""How Sphinx builds the site: ``make docs``."""

import inspect
import sys
from importlib.util import find_spec
from pathlib import Path

import certsvm

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "certsvm"
author = "The certsvm developers"
project_copyright = f"2026, {author}"
release = version = certsvm.__version__

# The one place that knows the public addresses.
repository_url = "https://github.com/certsvm/certsvm"
html_baseurl = "https://certsvm.github.io/certsvm/"

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.linkcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    # Our own, in _ext.
    "command_line",
    "docstrings",
    "external_names",
    "repository_links",
]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
exclude_patterns = ["_build", "auto_examples/**/*.ipynb"]
templates_path = ["_templates"]
nitpicky = True
# Values in docstrings, default="auto", are quoted as in Python.
smartquotes = False
toc_object_entries_show_parents = "hide"
# Behind the public names, and not in the reference.
nitpick_ignore = [("py:class", "certsvm.dask.cluster.ClusterProblem")]

# Markdown: every heading has an anchor, as on GitHub. Indented blocks are formulas and commands.
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4
highlight_language = "none"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# Pages that are files of the repository.
repository_pages = {"changelog": "CHANGELOG.md", "contributing": "CONTRIBUTING.md"}

# The reference.
autosummary_generate = True
autodoc_typehints = "none"
# The signature of a class is that of __init__; of a dataclass, its fields are its parameters.
autodoc_member_order = "groupwise"
# PyTorch is gigabytes: the reference does without it where it is not installed.
autodoc_mock_imports = [name for name in ("torch", "triton", "cupy") if find_spec(name) is None]
numpydoc_show_class_members = False


def linkcode_resolve(domain: str, info: dict[str, str]) -> str | None:
    """The address of the source of a name."""
    obj = sys.modules.get(info["module"]) if domain == "py" else None
    for part in info["fullname"].split("."):
        obj = getattr(obj, part, None)
    try:
        obj = inspect.unwrap(getattr(obj, "fget", obj))
        lines, first = inspect.getsourcelines(obj)
        file = Path(inspect.getsourcefile(obj) or "").relative_to(HERE.parent)
    except (TypeError, OSError, ValueError):
        # A constant, or a member that another library documents.
        return None
    return f"{repository_url}/blob/main/{file.as_posix()}#L{first}-L{first + len(lines) - 1}"


# The gallery.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "gallery_style.ReadingOrder",
    "doc_module": ("certsvm",),
    "backreferences_dir": "api/examples",
    "reference_url": {"certsvm": None},
    "reset_modules": ("matplotlib", "gallery_style.apply"),
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "plot_gallery": "True",
    "abort_on_example_error": False,
}

# The looks.
html_theme = "pydata_sphinx_theme"
html_title = "certsvm"
html_static_path = ["_static"]
html_css_files = ["certsvm.css"]
html_favicon = "_static/logo.svg"
html_show_sourcelink = False
# Without it, the theme logs an error in each browser that comes for the first time.
html_context = {"default_mode": "auto"}
html_sidebars = {"index": [], "faq": [], "glossary": [], "citing": [], "changelog": []}
html_theme_options = {
    "logo": {
        "text": "certsvm",
        "image_light": "_static/logo.svg",
        "image_dark": "_static/logo.svg",
    },
    "github_url": repository_url,
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "secondary_sidebar_items": ["page-toc"],
}

# make docs-links. That a file of the repository exists is checked by every build.
linkcheck_ignore = [rf"{repository_url}.*", rf"{html_baseurl}.*"]
linkcheck_anchors = False
linkcheck_timeout = 20
linkcheck_retries = 2
