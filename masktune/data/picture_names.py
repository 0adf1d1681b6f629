"""How the names of picture files end."""

SUFFIXES = (
    *(".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff"),
    *(".ppm", ".pgm", ".pbm", ".pnm", ".avif", ".jp2", ".heic", ".heif"),
)
"""In lower case; HEIC so that it is told of, not passed by."""
