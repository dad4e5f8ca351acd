"""Corpora that recipes read: lists, keys and audio files, validated before anything long starts."""
