"""VoicePrivacy challenges: scores of whole challenges assessed, result and rank files of 2022 to 2026 read and
written, systems ranked by utility within each least EER."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
