"""VoicePrivacy challenges: scores of whole challenges assessed, result and rank files of 2022 to 2026 read and
written, systems ranked by utility within each least EER."""

from evaluation.challenges.rank_files import (
    ASR,
    ASV,
    ASV_ANON,
    PROTOCOL,
    SER,
    RankFile,
    Section,
    make_section,
    write_rank_file,
)
from evaluation.challenges.ranking import (
    RULES,
    ComparedSystem,
    Entry,
    OrderingRule,
    SystemOrder,
    order_systems,
    orders_to_dict,
)
from evaluation.challenges.systems import (
    Reading,
    figure_rows,
    percent,
    plot_systems,
    read_figures,
    read_system,
    system_rows,
)
from evaluation.challenges.team_scores import NamingRule, assess, find_score_lists, weighted_average, write_challenge
