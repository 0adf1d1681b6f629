"""From a file to a batch: pictures, frames, splits, readers."""
