"""The sections of a report; ``masktune.report`` puts them together."""
