"""Start: the newest runs, each a link."""

import shutil


def table_of(at):
    return next(e.value for e in at.get("html") if "Continue a run" in e.value)


def test_every_run_is_a_link_that_opens_it(home_with_run, finished_run, open_page):
    at = open_page("start")

    assert not at.exception
    table = table_of(at)
    assert f'href="compare?run={finished_run.name}"' in table
    assert "MaskTune, k = 2" in table
    assert at.selectbox.len == 0  # the table is the list


def test_a_run_that_cannot_be_read_is_left_out(home_with_run, finished_run, a_run, open_page):
    damaged = home_with_run / "runs" / "20990101-000000-damaged"
    shutil.copytree(finished_run, damaged)
    (damaged / "result.json").write_text('{"old": true}')

    at = open_page("start")

    assert not at.exception
    assert "damaged" not in table_of(at)
    assert finished_run.name in table_of(at)


def test_older_runs_are_spoken_of_where_only_the_newest_are_listed(
    home_with_run, finished_run, open_page
):
    assert not any("newest of" in caption.value for caption in open_page("start").caption)
    for number in range(7):
        shutil.copytree(finished_run, home_with_run / "runs" / f"copy-{number}")

    told = [caption.value for caption in open_page("start").caption]

    assert "The 6 newest of 8. Runs lists all." in told
