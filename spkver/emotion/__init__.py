"""Recognising emotions without a GPU: functionals of pitch, energy and cepstra, and a support vector machine."""
