"""What people read: files of linkability, and of a privacy evaluation ``results.json`` (whose schema `privacy_results`
owns), its tables and the HTML page. Results enter; files leave."""

from evaluation.reports.beside import Beside, figures_beside
from evaluation.reports.linkability import (
    ALL,
    Beyond,
    Linkage,
    Settings,
    extrapolate_linkage,
    measure_linkage,
    report_extrapolation,
    speaker_quarters,
    utterances_name,
)
from evaluation.reports.linkability_files import (
    RANKS,
    clear_linkage,
    extrapolated_rows,
    write_extrapolation,
    write_linkage,
    write_plots,
    write_speaker_lists,
)
from evaluation.reports.page.comparison import write_comparison
from evaluation.reports.page.document import write_page
from evaluation.reports.privacy_results import parse_results, read_results
from evaluation.reports.privacy_schema import (
    FORMAT,
    INVERTING,
    LEVELS,
    SCENARIO_ORDER,
    SCENARIOS,
    TRIAL_BY_TRIAL,
    WHOLE_LIST,
    Scenario,
    strongest,
)
from evaluation.reports.privacy_tables import format_latex, format_markdown
