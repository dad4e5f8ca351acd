"""Which tests `make check` leaves out, and in which order files of tests are begun."""

from __future__ import annotations

# Files of tests of commands, workers, clusters and pictures; with all of tests/recipes they are marked `whole`. Those
# that take longest come first, in this order, so that no worker is left with one of them when the others are done.
WHOLE = (
    *("test_fuzz", "test_cluster", "test_interrupts", "test_voiceprivacy_steps"),
    "test_engines",
    *("test_notebooks", "test_linkability_cli", "test_console", "test_score_commands"),
    *("test_page", "test_plots", "test_transcription", "test_simulated", "test_simulated_voices"),
    *("test_attacker_runs", "test_evaluation_cli", "test_full_size"),
    *("test_packaging", "test_utility_pitch", "test_embed", "test_prepare", "test_several_systems"),
    *("test_zebra_cli", "test_linkability_runs", "test_linkability_extras", "test_challenge"),
    *("test_no_silent_numbers", "test_document_examples", "test_help_texts", "test_demo"),
)
RANK = {name: number for number, name in enumerate(WHOLE)}
