"""Linkability: how often a voice is linked to its target speaker among N enrolled speakers, for every N.

Embeddings or scores enter; the ranks of the target speakers (`Ranks`) are counted once, exactly; everything else is a
closed form of them: the curve, its intervals, rank disclosure, singling out, extrapolation beyond the gallery, and who
is easy or hard to link over attackers and anonymisers.
"""

from evaluation.linkage.agreement import (
    UTTERANCES,
    Agreement,
    Comparison,
    Comparisons,
    Levels,
    compare_conditions,
    condition_name,
    published,
)
from evaluation.linkage.alignment import (
    ALIGNMENTS,
    LINKED,
    AlignmentSettings,
    link_aligned,
    linked_shares,
    linked_vectors,
)
from evaluation.linkage.curve import (
    MEASURES,
    METHOD,
    Curve,
    Measure,
    all_draws,
    all_sizes,
    by_speaker,
    chance,
    linkability,
    linkability_at_sizes,
    linkability_by_row,
    linkability_curve,
    linkability_over_draws,
    linkability_over_sizes,
    log_spaced_sizes,
    monte_carlo,
    published_sizes,
)
from evaluation.linkage.disclosure import (
    KEPT,
    cumulative_match,
    largest_impostor_scores,
    rank_evidence_of,
    rank_shares,
    similarity_rank_disclosure,
    worst_case_from,
)
from evaluation.linkage.extrapolation import (
    HIDDEN,
    SPANNED,
    Backtest,
    Extrapolation,
    backtest,
    extrapolate,
    sizes_beyond,
)
from evaluation.linkage.galleries import (
    ALL,
    IMPOSTORS,
    RANKS,
    RankTables,
    Utterances,
    rank_embeddings,
    rank_trial_scores,
    read_rank_tables,
    utterances_name,
    write_impostor_scores,
)
from evaluation.linkage.profiles import PROFILE, ZebraProfile, ZebraProfiles, zebra_profiles
from evaluation.linkage.quarters import KINDS, RULES, DisclosureSets, TieSets, disclosure_sets, write_lists
from evaluation.linkage.ranks import (
    TIE_RULES,
    Ranks,
    TieRule,
    count_beaters,
    rank_scores,
    rank_speakers,
    ranks_from_embeddings,
    ranks_from_scores,
    ranks_of_matrix,
    read_ranks,
    write_ranks,
)
from evaluation.linkage.singling import REPORTED, singling_out
