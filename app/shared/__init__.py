"""Pieces of a page that more than one page could use."""
