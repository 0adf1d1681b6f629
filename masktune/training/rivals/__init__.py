"""The methods that the paper compares with, and later ones: one file each, with its ``tune``."""
