"""Cows and camels, drawn: the paper's running example."""
