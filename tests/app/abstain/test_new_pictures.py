"""Pictures that nobody has labelled, on the Abstain page."""

from PIL import Image

from masktune.runs.open import OpenRun
from tests.app.abstain.test_page import body
from tests.app.conftest import DEMO


def test_new_pictures_get_answers_and_a_file_that_is_no_picture_is_named(
    home_with_run, finished_run, open_page, tmp_path
):
    test = OpenRun(finished_run).tests["original"]
    for position, image in enumerate(test.split.images.batch([0, 1, 2])):
        Image.fromarray(image.permute(1, 2, 0).numpy()).save(tmp_path / f"{position}.png")
    (tmp_path / "torn.png").write_bytes(b"")
    page = open_page("abstain", dataset=DEMO, run=finished_run.name, coverage="100")
    button = next(b for b in page.button if b.label == "Answer these pictures")
    assert button.disabled

    page.text_input(key="new_path").set_value(str(tmp_path)).run()
    next(b for b in page.button if b.label == "Answer these pictures").click().run()

    assert not page.exception
    said = body(page)
    assert "3 of 3 pictures answered" in said
    assert r"torn.png \(it is empty\)" in "".join(c.value for c in page.caption)
    answers = test.pair.after.answers()[:3]
    assert all(f"after {test.classes[answer]}" in said for answer in answers)


def test_a_picture_that_was_written_anew_is_asked_about_again(
    home_with_run, finished_run, open_page, tmp_path
):
    test = OpenRun(finished_run).tests["original"]
    answers = test.pair.after.answers()
    first, other = (int((answers == number).argmax()) for number in (0, 1))

    def save(position):
        image = test.split.images.batch([position])[0]
        Image.fromarray(image.permute(1, 2, 0).numpy()).save(tmp_path / "one.png")

    save(first)
    page = open_page("abstain", dataset=DEMO, run=finished_run.name, coverage="100")
    page.text_input(key="new_path").set_value(str(tmp_path)).run()
    next(b for b in page.button if b.label == "Answer these pictures").click().run()
    assert f"after {test.classes[0]}" in body(page)

    save(other)
    next(b for b in page.button if b.label == "Answer these pictures").click().run()

    assert f"after {test.classes[1]}" in body(page)

    page.text_input(key="new_path").set_value(str(tmp_path / "nowhere")).run()
    next(b for b in page.button if b.label == "Answer these pictures").click().run()
    assert page.error
    page.run()
    assert "1 of 1 picture answered" not in body(page)  # which was said of other pictures
