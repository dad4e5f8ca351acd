"""One self-contained page of a privacy evaluation, for people: no network, no script, for screen and paper.

`write_page` makes it from the results of a recipe and the score files that they name; `write_comparison` puts several
anonymisers side by side.
`evaluation.reports.privacy_results` reads and checks the results, `verdict` puts them into words, `summary`,
`details` and `appendix` build the sections, `figures` the plots, and `markup` escapes every text.
"""

from evaluation.reports.page.comparison import render_comparison, write_comparison
from evaluation.reports.page.document import render_page, write_page
from evaluation.reports.privacy_results import parse_results, read_results

__all__ = ["parse_results", "read_results", "render_comparison", "render_page", "write_comparison", "write_page"]
