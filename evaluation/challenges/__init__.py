"""VoicePrivacy challenges: assessment of the scores of a whole challenge, result and rank files of 2022 to 2026, and
ranking of systems by utility within each minimum EER."""

from evaluation.challenges.baselines import (
    BASELINES,
    OFFICIAL,
    baseline_figures,
    baseline_systems,
    official_name,
)
from evaluation.challenges.rank_files import (
    ASR,
    ASV,
    ASV_ANON,
    PROTOCOL,
    SER,
    Section,
    format_rank_file,
    read_rank_file,
    write_rank_file,
)
from evaluation.challenges.ranking import (
    RULES,
    Assignment,
    ComparedSystem,
    OrderingRule,
    SystemOrder,
    order_rows,
    order_systems,
    orders_to_dict,
)
from evaluation.challenges.system_ranking import MIXED, SystemRanking, rank_systems
from evaluation.challenges.systems import (
    figure_rows,
    measured_utility,
    plot_systems,
    read_figures,
    read_system,
    split_of,
    system_rows,
)
from evaluation.challenges.team_scores import (
    assess,
    find_score_lists,
    weighted_average,
    write_challenge,
)

__all__ = [
    "ASR",
    "ASV",
    "ASV_ANON",
    "BASELINES",
    "MIXED",
    "OFFICIAL",
    "PROTOCOL",
    "RULES",
    "SER",
    "Assignment",
    "ComparedSystem",
    "OrderingRule",
    "Section",
    "SystemOrder",
    "SystemRanking",
    "assess",
    "baseline_figures",
    "baseline_systems",
    "figure_rows",
    "find_score_lists",
    "format_rank_file",
    "measured_utility",
    "official_name",
    "order_rows",
    "order_systems",
    "orders_to_dict",
    "plot_systems",
    "rank_systems",
    "read_figures",
    "read_rank_file",
    "read_system",
    "split_of",
    "system_rows",
    "weighted_average",
    "write_challenge",
    "write_rank_file",
]
