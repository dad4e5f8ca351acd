"""Embeddings: one vector an utterance, of any origin.

`read_embeddings` takes HDF5, npz, npy, Kaldi's archives, PyTorch's files, safetensors, tables, folders of them, and
(on request, through stand-ins) pickles; what leaves is an `Embeddings`: ids, speakers, vectors. Means of speakers and
cosine scores are made of it.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
