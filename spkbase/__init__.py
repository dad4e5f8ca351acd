"""The basis of `evaluation` and `spkver`: files, arrays, workers, runs, command lines. It knows nothing of speech or
scores, and imports neither package.
"""
