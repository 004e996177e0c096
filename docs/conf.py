"""How Sphinx builds these pages. It needs no network and loads nothing from one."""

project = "watchdog-monitor"
author = "the libwatchdog authors"
html_title = "watchdog-monitor"
extensions = ["myst_parser", "sphinx_copybutton"]
myst_enable_extensions = ["deflist", "colon_fence"]
myst_heading_anchors = 4
exclude_patterns = ["tools", "_build"]
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["docs.css"]
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
pygments_style = "friendly"
# A prompt is not copied with its command.
copybutton_prompt_text = "$ "
# Blocks of output and of the formats below are not highlighted.
suppress_warnings = ["misc.highlighting_failure"]


def _without_outer_links(app, name, source):
    """A link to a folder or a page outside of docs/ works on a repository's site. Here its name remains."""
    import pathlib
    import re

    from sphinx.util import logging

    page = pathlib.Path(app.srcdir, name)

    def plain(found):
        target = (page.parent / found[2].split("#")[0]).resolve()
        if target.is_relative_to(app.srcdir) or (target.is_file() and target.suffix != ".md"):
            return found[0]
        if not target.exists():
            logging.getLogger(__name__).warning("there is no %s", found[2], location=name)
        return found[1] if "." in found[1] or "/" in found[1] else f"{found[1]} ({target.name})"

    source[0] = re.sub(r"\[([^\]\n]+)\]\((\.\./[^)\s]+)\)", plain, source[0])


def setup(app):
    app.connect("source-read", _without_outer_links)
