"""VoicePrivacy challenges: scores of whole challenges assessed, result and rank files of 2022 to 2026 read and
written, systems ranked by utility within each minimum EER."""

from evaluation.challenges.rank_files import (
    ASR,
    ASV,
    ASV_ANON,
    PROTOCOL,
    SER,
    Section,
    read_rank_file,
    write_rank_file,
)
from evaluation.challenges.ranking import (
    RULES,
    Assignment,
    ComparedSystem,
    OrderingRule,
    SystemOrder,
    order_systems,
    orders_to_dict,
)
from evaluation.challenges.system_ranking import MIXED, SystemRanking, rank_systems
from evaluation.challenges.systems import (
    figure_rows,
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
    "MIXED",
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
    "figure_rows",
    "find_score_lists",
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
