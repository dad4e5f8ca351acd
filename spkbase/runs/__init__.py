"""Runs: long work in an output folder, which goes on after any end and does nothing twice.

A `Run` declares stages (`Run.stage`: what makes an artefact, what it depends on) and brings them up to date. The
ledger in ``stages.json`` knows what each artefact was made from; journals and drafts keep the finished chunks of
what is unfinished; a lock keeps a second run out; `read_status` tells how far a folder is.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
