"""Embeddings of any origin: one vector per utterance.

`read_embeddings` takes HDF5, npz, npy, Kaldi's archives, PyTorch's files, safetensors, tables, folders of them, and
(on request, without running them) pickles, and returns `Embeddings`: ids, speakers, vectors. Means of speakers and
cosine scores are computed from them.
"""

from evaluation.embeddings.alignment import (
    Alignment,
    MapKind,
    fit_alignment,
    fit_alignment_without_pairs,
    owner_ranks,
    procrustes,
    ridge_map,
    wasserstein_procrustes,
)
from evaluation.embeddings.copies import find_copies, rounding
from evaluation.embeddings.files import holds_embeddings, read_embeddings, write_embeddings
from evaluation.embeddings.kaldi import read_binary, read_text_matrix
from evaluation.embeddings.sets import (
    TIE,
    Averaging,
    Embeddings,
    SpeakerVectors,
    check_anonymised,
    check_embeddings,
    check_norms,
    conversation_vectors,
    cosine_margin,
    cosine_scores,
    cosines,
    deal_embeddings,
    row_norms,
    speaker_folds,
    speaker_vectors,
    to_unit,
    warn_of_copies,
    warn_of_enrolled,
)

__all__ = [
    "TIE",
    "Alignment",
    "Averaging",
    "Embeddings",
    "MapKind",
    "SpeakerVectors",
    "check_anonymised",
    "check_embeddings",
    "check_norms",
    "conversation_vectors",
    "cosine_margin",
    "cosine_scores",
    "cosines",
    "deal_embeddings",
    "find_copies",
    "fit_alignment",
    "fit_alignment_without_pairs",
    "holds_embeddings",
    "owner_ranks",
    "procrustes",
    "read_binary",
    "read_embeddings",
    "read_text_matrix",
    "ridge_map",
    "rounding",
    "row_norms",
    "speaker_folds",
    "speaker_vectors",
    "to_unit",
    "warn_of_copies",
    "warn_of_enrolled",
    "wasserstein_procrustes",
    "write_embeddings",
]
