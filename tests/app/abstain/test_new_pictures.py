"""Pictures that nobody has labelled, on the Abstain page."""

import io
import re
import shutil
import zipfile
from urllib.parse import unquote

import pytest
from PIL import Image

from app.abstain import new_pictures
from app.picture import sources
from app.picture.easel import File
from masktune.runs.open import OpenRun
from masktune.runs.pair import SelectivePair, answer_pictures, read_pair, unlabelled
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


def test_what_was_said_of_one_path_is_not_said_beside_another(
    home_with_run, finished_run, open_page, tmp_path, digits
):
    (torn := tmp_path / "torn.png").write_bytes(b"")
    page = open_page("abstain", dataset=DEMO, run=finished_run.name, coverage="100")
    page.text_input(key="new_path").set_value(str(torn)).run()
    next(b for b in page.button if b.label == "Answer these pictures").click().run()
    assert page.error

    page.text_input(key="new_path").set_value(str(digits)).run()
    assert not page.error
    next(b for b in page.button if b.label == "Answer these pictures").click().run()
    assert "40 of 40 pictures answered" in body(page)

    page.text_input(key="new_path").set_value(str(digits / "00.png")).run()
    assert "40 of 40 pictures answered" not in body(page)


@pytest.fixture
def asked(monkeypatch):
    """Note how often models are asked about new pictures."""
    seen = []

    def ask(*given, **named):
        seen.append(given)
        return answer_pictures(*given, **named)

    monkeypatch.setattr(new_pictures, "answer_pictures", ask)
    return seen


@pytest.fixture
def digits(finished_run, tmp_path):
    """Give a folder with pictures that the finished run was tested on."""
    folder = tmp_path / "digits"
    folder.mkdir()
    test = OpenRun(finished_run).tests["original"]
    for position, image in enumerate(test.split.images.batch(range(40))):
        Image.fromarray(image.permute(1, 2, 0).numpy()).save(folder / f"{position:02d}.png")
    return folder


def test_another_target_coverage_asks_no_model_again(
    home_with_run, finished_run, open_page, digits, asked
):
    page = open_page("abstain", dataset=DEMO, run=finished_run.name, coverage="100")
    page.text_input(key="new_path").set_value(str(digits)).run()
    next(b for b in page.button if b.label == "Answer these pictures").click().run()
    assert "40 of 40 pictures answered" in body(page)

    page.slider[0].set_value(50).run()

    pair = SelectivePair.of(OpenRun(finished_run), coverage=0.5)
    answered = answer_pictures(pair, digits, sorted(digits.iterdir())).said["joint"].accepted.sum()
    assert 0 < answered < 40
    assert f"{answered} of 40 pictures answered" in body(page)
    assert "target coverage of 50%" in body(page)
    assert len(asked) == 1


def test_the_models_of_another_run_are_asked_when_somebody_wants_it(
    home_with_run, finished_run, open_page, digits, asked
):
    other = home_with_run / "runs" / "20261116-130000-other"
    shutil.copytree(finished_run, other)
    page = open_page("abstain", dataset=DEMO, run=finished_run.name, coverage="100")
    page.text_input(key="new_path").set_value(str(digits)).run()
    next(b for b in page.button if b.label == "Answer these pictures").click().run()

    page.selectbox(key="run_of_Run").select(other.name).run()
    assert not page.exception
    assert len(asked) == 1
    assert "of 40 pictures answered" not in body(page)

    page.selectbox(key="run_of_Run").select(finished_run.name).run()
    assert "40 of 40 pictures answered" in body(page)
    assert len(asked) == 1


def test_a_photograph_is_seen_as_one_picture_shows_it(home_with_run, finished_run):
    run, file = OpenRun(finished_run), io.BytesIO()
    Image.linear_gradient("L").resize((120, 90)).rotate(30).save(file, "PNG")

    where = sources.take(run.config, File(name="a.png", content=file.getvalue(), becomes="picture"))
    one = sources.source(run.config, where).image

    (kept,) = (home_with_run / "uploads").glob("*/a.png")
    seen = SelectivePair.of(run, coverage=1.0).frame
    assert (unlabelled([kept], seen).images.batch([0])[0] == one).all()


def test_uploads_and_the_pictures_of_a_zip_get_answers_and_lead_to_their_pages(
    home_with_run, finished_run, open_page
):
    test = OpenRun(finished_run).tests["original"]
    pictures = []
    for image in test.split.images.batch([0, 1, 2]):
        Image.fromarray(image.permute(1, 2, 0).numpy()).save(file := io.BytesIO(), "PNG")
        pictures.append(file.getvalue())
    with zipfile.ZipFile(packed := io.BytesIO(), "w") as archive:
        archive.writestr("inside/deep/third.png", pictures[2])
    page = open_page("abstain", dataset=DEMO, run=finished_run.name, coverage="100")
    page.text_input(key="new_path").set_value("/nowhere").run()  # uploads go before a path

    page.file_uploader(key="new_upload").set_value(
        [
            ("my first.png", pictures[0], "image/png"),
            ("second.png", pictures[1], "image/png"),
            ("more.zip", packed.getvalue(), "application/zip"),
        ]
    ).run()
    next(b for b in page.button if b.label == "Answer these pictures").click().run()

    assert not page.exception
    assert not page.error
    said = body(page)
    assert "3 of 3 pictures answered" in said
    answers = test.pair.after.answers()[:3]
    words = re.sub(r"<[^>]*>", "", said)
    for name, answer in zip(("my_first.png", "second.png", "third.png"), answers, strict=True):
        start = words.index(f"{name}: before")
        assert f"after {test.classes[answer]}" in words[start : start + 60]
    links = [unquote(link) for link in re.findall(r'href="picture\?picture=(file[^"]*)"', said)]
    assert [link.rpartition("/")[2] for link in links] == ["my_first.png", "second.png"]

    opened = open_page("picture", dataset=DEMO, run=finished_run.name, picture=links[0])

    assert not opened.exception
    assert not opened.error


def test_both_models_and_gamma_are_those_of_the_target_on_the_page(
    home_with_run, finished_run, open_page, tmp_path, monkeypatch
):
    offered, download = {}, new_pictures.download

    def kept(label, data, name, **how):
        offered[label] = data, name
        return download(label, data, name, **how)

    monkeypatch.setattr(new_pictures, "download", kept)

    page = open_page("abstain", dataset=DEMO, run=finished_run.name, coverage="75")

    assert not page.exception
    data, name = offered["Both models and gamma (ZIP)"]
    assert name.endswith("pair.zip")
    (tmp_path / name).write_bytes(data())
    found = read_pair(tmp_path / name)
    assert found.coverage == 0.75
    assert found.gammas == pytest.approx(
        SelectivePair.of(OpenRun(finished_run), coverage=0.75).gammas
    )
    assert found.gammas["joint"] < 1
