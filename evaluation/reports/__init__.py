"""What people read: files of linkability, and of a privacy evaluation ``results.json`` (whose schema `privacy_results`
owns), its tables and the HTML page. Results enter; files leave."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
