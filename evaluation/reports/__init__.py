"""Reports: the files of a linkability evaluation; and the results of a privacy evaluation, ``results.json`` (format in
`results`), as tables and as an HTML page."""

from evaluation.reports.about import (
    Anonymiser,
    AttackersRun,
    Average,
    ChosenBackend,
    Estimation,
    Failure,
    Finding,
    FusionWeights,
    LastRun,
    Protocol,
    Seeds,
    UtilityFigure,
    UtilityRate,
    Voices,
)
from evaluation.reports.comparison import rate_difference, samples_of
from evaluation.reports.linkability import (
    Beyond,
    Linkage,
    Settings,
    extrapolate_linkage,
    measure_linkage,
    report_extrapolation,
    speaker_quarters,
    write_linkage,
)
from evaluation.reports.page import write_comparison, write_page
from evaluation.reports.results import (
    FORMAT,
    OVER_SCENARIOS,
    ClosedSet,
    Condition,
    Draw,
    EnrolledSpeaker,
    Linkability,
    Minima,
    Outcome,
    Results,
    in_order,
    main_outcomes,
    one_error,
    parse_results,
    read_results,
    strongest,
    summarise,
    typed_results,
)
from evaluation.reports.rows import Row, interval_from, number
from evaluation.reports.tables import (
    CSV,
    columns_of,
    format_latex,
    format_markdown,
    format_outcomes,
    latex_table,
    percent,
    table_rows,
)
from evaluation.reports.verdict import headlines, overall
