"""A self-contained HTML page of a privacy evaluation, for screen and paper, without scripts or network access.

`write_page` makes it from the results of a recipe and the score files that they name. It asks for the verdict, the
table of all figures and the pictures, and fills the template ``page.html.j2``.
"""

from __future__ import annotations

from pathlib import Path

from evaluation.reports.pictures import draw_page
from evaluation.reports.results import Results, one_error
from evaluation.reports.rows import number
from evaluation.reports.tables import FIGURES, conversation_rows, table_rows
from evaluation.reports.templates import fill
from evaluation.reports.verdict import judge
from spkbase.files import write_text


def write_page(
    results: Results,
    path: str | Path,
    *,
    folder: str | Path,
    title: str = "",
    pseudonyms: bool = False,
) -> None:
    """Write the page of a privacy evaluation; the same input gives the same bytes.

    Parameters
    ----------
    results : Results
        See `evaluation.reports.read_results`.
    path : path
        The HTML file.
    folder : path
        Folder to which the paths of scores and keys in the results are relative.
    title : str, optional
        Heading of the page, in place of the name of the anonymiser.
    pseudonyms : bool, optional
        Replace the names of speakers by S01, S02, ..., in the order of the names.

    Raises
    ------
    DataError
        If the results are malformed or the file cannot be written. If scores are missing, the page has a note in place
        of the plot.
    """
    # only a page inside the folder links to scores: any other may be passed on and must not name a local folder
    root = Path(folder).resolve()
    parent = Path(path).absolute().parent.resolve()
    base = None
    if parent.is_relative_to(root):
        base = "../" * len(parent.relative_to(root).parts)
    page = render_page(results, folder=folder, base=base, title=title, pseudonyms=pseudonyms)
    write_text(path, page)


def render_page(
    results: Results,
    *,
    folder: str | Path,
    base: str | None = None,
    title: str = "",
    pseudonyms: bool = False,
) -> str:
    """Return the page as text; see `write_page`. `base` leads from the page to the folder, for links to scores."""
    with one_error():
        if pseudonyms:
            results = results.with_pseudonyms()
        lists = results.on_main_lists()
        level = number(results.settings.evaluation.level)
        name = results.name
        verdict = judge(results)
        figures = table_rows(FIGURES, results.outcomes)
        drawn = draw_page(
            lists,
            verdict.headlines,
            results.utility,
            folder=Path(folder),
            level=level,
            name=name,
            conversations=results.by_utterances(),
        )
        values = {
            "results": results,
            "lists": lists,
            "judged": verdict,
            "figures": figures,
            "spoken": conversation_rows(results),
            "drawn": drawn,
            "base": base,
            "title": title,
            "pseudonyms": pseudonyms,
        }
        return fill("page.html.j2", values)
