"""From values to something to look at; pages, report and CLI share it."""
