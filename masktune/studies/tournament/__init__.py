"""Methods side by side on one dataset, in one table."""
