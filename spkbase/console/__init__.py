"""What command lines share: errors as one clear message with status 2, a clean end on Ctrl-C, log lines on standard
error, the options for workers. `Command` and `LazyGroup` are the classes to use."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
