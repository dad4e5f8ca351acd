"""Scores in, evidence out: detection metrics, plots and reports for any list of verification scores."""
