"""The home for runs and the finished run that the pages' tests use."""

from tests.app.conftest import finished_run, home, home_with_run  # noqa: F401
