"""The run folder: written, resumed, queued, opened, exported."""
