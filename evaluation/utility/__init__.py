"""How useful speech still is: words (WER, CER), emotions (UAR), intonation (F0 correlation), and ranks of systems.

Each measure is a sum or a mean over speakers, and has an interval by a bootstrap of speakers.
"""
