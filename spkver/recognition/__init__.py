"""What else is heard in speech: words (PocketSphinx) and emotions, a result a recording; they measure utility."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
