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
    Pairing,
    Protocol,
    Seeds,
    UtilityFigure,
    UtilityRate,
    Voices,
)
from evaluation.reports.comparison import draw_samples, rate_difference, samples_of, write_comparison
from evaluation.reports.conditions import (
    ClosedSet,
    Condition,
    Draw,
    EnrolledSpeaker,
    Linkability,
    ends_and_notes,
    list_in_words,
)
from evaluation.reports.formatting import percent
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
from evaluation.reports.outcomes import (
    OVER_SCENARIOS,
    Minima,
    Outcome,
    in_order,
    main_outcomes,
    strongest,
    summarise,
)
from evaluation.reports.page import write_page
from evaluation.reports.results import FORMAT, Results, one_error, parse_results, read_results, typed_results
from evaluation.reports.rows import Row, interval_from, number
from evaluation.reports.tables import (
    CSV,
    columns_of,
    format_latex,
    format_markdown,
    format_outcomes,
    latex_table,
    table_rows,
)
from evaluation.reports.verdict import Headline, headlines, overall
