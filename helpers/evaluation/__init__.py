"""Evaluation: trials -> scores -> metrics with intervals.

Samples, encoders and lists of pairs come in; tables of metrics with intervals, and decisions fitted
on dev go out. Ties are decided in one place (:mod:`helpers.evaluation.scores`). Nothing here knows
a loss, trains a network, or is fitted on the data that it measures.
"""

from ..core.rooms import front_door

__getattr__, __dir__ = front_door(
    __name__,
    {
        ".calibration": [
            "calibration_metrics",
            "fit_calibration",
            "reliability_bins",
        ],
        ".comparisons": [
            "compare_links",
            "compare_ranks",
            "compare_verified",
            "link_systems",
            "rank_rows",
            "rank_systems",
            "verify_systems",
        ],
        ".document_pairs": ["KIND_NAMES", "PairsConfig", "count_kinds"],
        ".linking": [
            "LinkingConfig",
            "linking_curve",
            "linking_metrics",
            "linking_trials",
            "score_linking",
        ],
        ".lists": ["match_drawn_lists", "match_systems", "name_of_way", "record_lists"],
        ".matching": ["draw_lists", "fit_match"],
        ".models": [
            "Embeddings",
            "GalleryTfidf",
            "Member",
            "Model",
            "as_model",
            "fit_weights",
        ],
        ".ranking": [
            "compare_rankings",
            "evaluate_ranking",
            "positive_ranks",
            "ranking_differences",
            "ranking_trials",
            "trials_by_community",
        ],
        ".scores": ["neighbour_norm", "neighbour_statistics", "s_norm"],
        ".systems": ["Network", "RowSystem", "System"],
        ".trials": ["Trials", "communities"],
        ".verification": [
            "DEFINITIONS",
            "apply_thresholds",
            "auc_by_comparison",
            "best_thresholds",
            "pan_metrics",
            "threshold_surface",
            "to_scores",
            "verification_metrics",
            "write_records",
        ],
    },
)
