"""The site: pip install '.[docs]' && python -m sphinx -W --keep-going docs site"""

import re
import sys
from pathlib import Path

from heterosis import __version__

_HERE = Path(__file__).parent
sys.path.insert(0, str(_HERE))
import make_translations
import reference_pages

project, author, release = "Heterosis", "The Heterosis contributors", __version__
extensions = ["myst_parser", "reference_tables"]
html_theme = "furo"
html_title = "Heterosis"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_copyright = html_show_sourcelink = html_show_sphinx = html_copy_source = False
nitpicky = True
highlight_language = "none"  # of blocks that name none
pygments_style = "friendly"
myst_heading_anchors = 4  # links to headings are checked like links to pages

# Pages whose text stands elsewhere in the repository, with where its links lead from here.
_ELSEWHERE = {
    "changelog": ("CHANGELOG.md", {}),
    "contributing": ("CONTRIBUTING.md", {"CHANGELOG.md": "changelog.md"}),
    "running_benchmarks": ("benchmarks/README.md", {}),
}
_LANGUAGES = ("c", "cpp", "python", "javascript", "perl", "java", "scala", "r")
_ELSEWHERE |= {f"in_{name}": (f"frontends/{name}/README.md", {}) for name in _LANGUAGES}


def _read_elsewhere(app, page, source):
    """Put the text that a page stands for in its place."""
    if page not in _ELSEWHERE:
        return
    name, moved = _ELSEWHERE[page]
    path = _HERE.parent / name
    app.env.note_dependency(path)

    def link(found):
        target = found[1].removeprefix("docs/")
        return f"]({moved.get(target, target)})"

    source[0] = re.sub(r"\]\(([^):]+)\)", link, path.read_text())


def _name_language(app, page, template, context, doctree):
    """Tell browsers which language a page is in, for fonts, hyphens and screen readers."""
    folder = page.partition("/")[0]
    if folder in make_translations.languages():
        context["language"] = folder


def setup(app):
    app.connect("builder-inited", lambda app: reference_pages.write())
    app.connect("html-page-context", _name_language)
    app.connect("source-read", _read_elsewhere)
