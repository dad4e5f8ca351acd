"""Reports: the files of a linkability evaluation; and the results of a privacy evaluation, ``results.json`` (format in
`results`), as tables and as an HTML page."""

from evaluation.reports.linkability import (
    ALL,
    RANKS,
    Beyond,
    Linkage,
    Settings,
    extrapolate_linkage,
    measure_linkage,
    report_extrapolation,
    speaker_quarters,
    utterances_name,
    write_linkage,
)
from evaluation.reports.page import write_comparison, write_page
from evaluation.reports.results import (
    FORMAT,
    find,
    interval_from,
    number,
    one_error,
    parse_results,
    read_results,
    secondary_results,
    strongest,
)
from evaluation.reports.tables import format_latex, format_markdown, latex_table
from evaluation.reports.verdict import headlines, one_in
