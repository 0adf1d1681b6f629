"""The Load page with what people bring: odd addresses, choices that stay, models that change."""

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from streamlit.testing.v1 import AppTest

from app import loaded as cached
from masktune.checkpoints.settings import settings
from masktune.models.build import build
from masktune.pipeline import train_before
from masktune.runs.folder import new_run_path
from tests.app.conftest import address
from tests.app.load.test_page import DEMO, folder, shown, texts, weights, with_checkpoint

__all__ = ["folder", "weights"]  # fixtures


ADDRESSES = [
    {"dataset": DEMO, "model": "train", "arch": "nonsense"},
    {"dataset": DEMO, "model": "train", "epochs": "0"},
    {"dataset": DEMO, "model": "train", "epochs": "1" + "0" * 30},
    {"dataset": "folder", "root": "~nobody-of-this-name/x", "model": "~nobody-of-this-name/y.pth"},
    {"dataset": "folder", "root": "/a\0b", "model": "/a\0b"},
    {"dataset": "folder", "root": "/" + "a" * 5000, "model": "/" + "a" * 5000},
    {"dataset": "folder", "root": "/" + "a" * 300, "model": "/" + "a" * 300},
    {"dataset": "folder", "root": "/nowhere", "attributes": "/" + "a" * 300},
    {"dataset": DEMO, "model": "train", "weights": "/" + "a" * 300},
    {"dataset": "folder", "root": "/nowhere/at/all"},
]


@pytest.mark.parametrize("address", ADDRESSES, ids=lambda a: ", ".join(list(a.values()))[:40])
@pytest.mark.parametrize("page", ["load", "mask"])
def test_an_address_that_cannot_be_right_is_explained_or_left_out(home, open_page, address, page):
    at = open_page(page, **address)

    assert not at.exception
    assert len(at.error) <= 2  # what is wrong with the pictures, and with the file
    assert len({e.value for e in at.error}) == len(at.error)


def test_pictures_that_are_not_there_are_explained_once(home, open_page, weights):
    at = open_page("load", dataset="folder", root="/nowhere/at/all", model=weights)

    assert ["does not exist" in e.value for e in at.error] == [True]


def test_pictures_are_checked_before_there_is_a_model(home, open_page, folder):
    at = open_page("load", dataset=DEMO)

    at.segmented_control[0].set_value("Folder").run()
    at.text_input(key="own_root").set_value(folder).run()

    assert not at.exception
    assert "1 file left out, unusable: red/broken.png" in shown(at)
    assert "Until then Biased MNIST stays loaded." in at.info[0].value
    assert "Still loaded" not in texts(at)  # as if it were the title of the new groups


def test_new_pictures_are_shown_at_once_and_a_model_is_asked_for(home, open_page, folder):
    at = open_page("load", dataset=DEMO)

    at.segmented_control[0].set_value("Folder").run()
    at.text_input(key="own_root").set_value(folder).run()

    assert "Now choose a model" in at.info[0].value
    groups = next(e.value for e in at.get("html") if 'aria-label="Groups"' in e.value)
    assert "red" in groups
    assert "0–4" not in groups
    assert at.session_state.dataset == DEMO


def test_pictures_behind_a_number_lead_nowhere_while_others_are_loaded(home, open_page, folder):
    at = open_page("load", dataset=DEMO)
    at.segmented_control[0].set_value("Folder").run()
    at.text_input(key="own_root").set_value(folder).run()

    at.session_state.shown = "group:train:0"  # as a click on the first number of Groups
    at.run()

    assert not at.exception
    sheet = next(e.value for e in at.get("html") if "position 0, blue" in e.value)
    assert 'href="picture' not in sheet  # that would be a picture of the demo
    assert "shown" not in address(at)  # likewise
    assert "Files (CSV)" in [button.label for button in at.get("download_button")]

    at = open_page("load", dataset=DEMO, shown="group:train:0")

    assert address(at)["shown"] == "group:train:0"
    assert any('href="picture' in e.value for e in at.get("html"))


def test_how_small_pictures_are_that_are_seen_as_they_are_is_said(home, open_page, folder):
    at = open_page("load", dataset=DEMO)

    at.segmented_control[0].set_value("Folder").run()
    at.text_input(key="own_root").set_value(folder).run()

    frames = next(box for box in at.selectbox if box.label == "Resize and crop")
    assert frames.options[0] == "224 × 224, small pictures as they are"
    said = "the same size and it is 64 × 64 or smaller, nothing is done to them"
    assert said in texts(at)
    frames.set_value("resize 64x64").run()
    assert said not in texts(at)


def test_new_pictures_are_shown_with_a_model_of_other_classes_refused(home, open_page, folder):
    seven = Path(folder).with_name("seven.pt")
    torch.save(build("resnet20", 7).state_dict(), seven)
    at = open_page("load", dataset=DEMO)
    at.segmented_control[0].set_value("Folder").run()
    at.text_input(key="own_root").set_value(folder).run()

    at = with_checkpoint(at, str(seven), "folder")

    assert not at.exception
    (problem,) = at.error
    assert "7 classes apart" in problem.value
    assert "1 file left out, unusable: red/broken.png" in shown(at)
    groups = next(e.value for e in at.get("html") if 'aria-label="Groups"' in e.value)
    assert "red" in groups
    assert at.session_state.dataset == DEMO


@pytest.fixture
def shapes(folder) -> str:
    """Give the same pictures under classes of other names."""
    for old, new in (("blue", "aa"), ("red", "bb")):
        shutil.copytree(Path(folder) / old, Path(folder).with_name("shapes") / new)
    return str(Path(folder).with_name("shapes"))


def test_other_pictures_do_not_take_over_the_model_of_the_first(
    home, open_page, folder, shapes, weights
):
    at = open_page("load", dataset="folder", root=folder, model=weights)
    assert at.text_input(key="weights_path_folder").value == weights

    at.text_input(key="own_root").set_value(shapes).run()

    assert not at.exception
    assert "Now choose a model" in at.info[0].value
    assert at.session_state["root"] == folder
    assert at.text_input(key="weights_path_folder_1").value == ""

    at.text_input(key="weights_path_folder_1").set_value(weights).run()

    assert (at.session_state["root"], at.session_state["model"]) == (shapes, weights)


@pytest.mark.slow
def test_a_model_of_classes_with_other_names_is_warned_of(home, open_page, folder, shapes):
    trained = settings({"dataset": "folder", "root": folder, "epochs": 1})
    made = train_before(trained, out=new_run_path(trained)).folder / "before.safetensors"

    assert "Made for other classes" not in shown(
        open_page("load", dataset="folder", root=folder, model=str(made))
    )
    said = shown(open_page("load", dataset="folder", root=shapes, model=str(made)))
    assert "Made for other classes: blue, red" in said
    assert "Here its answers are called aa, bb" in said


def test_the_path_of_a_folder_is_there_after_a_look_at_the_demo(home, open_page, folder):
    at = open_page("load", dataset=DEMO)

    at.segmented_control[0].set_value("Folder").run()
    at.text_input(key="own_root").set_value(folder).run()
    at.segmented_control[0].set_value("Demo").run()
    at.segmented_control[0].set_value("Folder").run()

    assert at.text_input(key="own_root").value == folder


def test_own_pictures_are_called_by_their_folder(home, open_page, folder):
    at = open_page("load", dataset="folder", root=folder, model="train")

    assert not at.exception
    links = [link.value for link in at.get("page_link")]
    assert any(link.startswith(f"Load :small[{Path(folder).name}") for link in links)


def test_an_architecture_of_another_package_stays_chosen(home, open_page):
    at = open_page("load", dataset=DEMO, model="train", arch="timm/resnet18")

    assert not at.exception
    assert at.selectbox(key=f"train_arch_{DEMO}").value == "timm/resnet18"
    assert at.session_state["arch"] == "timm/resnet18"


def test_a_refused_file_is_answered_in_the_words_of_the_page(home, open_page, tmp_path):
    torch.save({"alpha.beta": torch.zeros(2, 2)}, tmp_path / "unlike.pt")
    torch.save(build("small-cnn", 2).state_dict(), tmp_path / "ambiguous.pt")
    state = {f"module.{name}": v for name, v in build("small-cnn", 7).state_dict().items()}
    torch.save({"arch": "small-cnn", "state_dict": state}, tmp_path / "seven.pt")

    at = with_checkpoint(open_page("load", dataset=DEMO), str(tmp_path / "unlike.pt"))
    path = at.text_input(key=f"weights_path_{DEMO}")
    said = [at.error[0].value]
    for name in ("ambiguous.pt", "seven.pt"):
        path.set_value(str(tmp_path / name)).run()
        # Under the choice it belongs to, and nowhere else.
        assert len(at.error) == len(at.columns[0].error) == 1
        said.append(at.error[0].value)

    assert "a class of your own works on the command line only" in said[0]
    assert "Choose small-cnn or small-cnn-stride2 under Architecture." in said[1]
    assert "7 classes apart, the dataset has 2" in said[2]
    assert "or give these a new last layer and train it here" in said[2]
    assert any(b.label == "Give it a new last layer" for b in at.button)
    assert "--" not in "".join(said)


def test_what_is_still_loaded_is_named_with_its_weights(home, open_page, weights, slow_looks):
    at = with_checkpoint(open_page("load", dataset=DEMO), weights)
    at.text_input(key=f"weights_path_{DEMO}").set_value("/nowhere/model.pth").run()

    assert "Still loaded: Biased MNIST with resnet20.pth" in texts(at).replace("\\", "")


def elsewhere_and_back(at: AppTest) -> AppTest:
    """Leave the page, so that its widgets forget what they showed, and come again."""
    at.switch_page("abstain/page.py").run()
    return at.switch_page("load/page.py").run()


@pytest.fixture
def stating(tmp_path) -> str:
    """Give weights that state the normalisation they were trained with."""
    path = tmp_path / "stating.safetensors"
    torch.manual_seed(0)  # always the same weights: what they answer is asked once
    state = build("resnet20", 2).state_dict()
    notes = {"arch": "resnet20", "mean": "[0.5, 0.5, 0.5]", "std": "[0.5, 0.5, 0.5]"}
    save_file(state, path, metadata=notes)
    return str(path)


@pytest.mark.parametrize(("chosen", "normalise"), [("usual", None), ("in9", "in9")])
def test_another_normalisation_than_the_file_states_stays_chosen(
    home, open_page, stating, slow_looks, chosen, normalise
):
    at = with_checkpoint(open_page("load", dataset=DEMO), stating)
    assert at.selectbox(key=f"normalise_{DEMO}_stored").value == "stored"

    at.selectbox(key=f"normalise_{DEMO}_stored").set_value(chosen).run()
    elsewhere_and_back(at)

    assert not at.exception
    assert at.selectbox(key=f"normalise_{DEMO}_stored").value == chosen
    assert at.session_state["normalise"] == (normalise or "")


def test_the_normalisation_a_file_states_is_still_named_as_its_own(
    home, open_page, stating, slow_looks
):
    at = elsewhere_and_back(with_checkpoint(open_page("load", dataset=DEMO), stating))

    assert at.selectbox(key=f"normalise_{DEMO}_stored").value == "stored"


def test_the_run_whose_model_is_loaded_is_the_run_that_is_shown(
    home_with_run, finished_run, open_page
):
    runs = home_with_run / "runs"
    later = f"2{finished_run.name[1:]}-later"
    shutil.copytree(finished_run, runs / later)
    wanted = [str(runs / name / "before.safetensors") for name in (later, finished_run.name)]

    for model in wanted:
        at = open_page("load", dataset=DEMO, model=model)

        assert not at.exception
        assert at.session_state["model"] == model


@pytest.mark.slow
def test_an_upload_goes_before_a_path_and_the_page_says_so(home, open_page, weights):
    at = open_page("load", dataset=DEMO)
    at.segmented_control(key=f"model_source_{DEMO}").set_value("My checkpoint").run()
    assert not at.text_input(key=f"weights_path_{DEMO}").disabled

    content = Path(weights).read_bytes()
    given = ("best.pth", content, "application/octet-stream")
    at.file_uploader(key=f"weights_{DEMO}").set_value(given).run()

    assert not at.exception
    assert at.text_input(key=f"weights_path_{DEMO}").disabled
    assert at.session_state["model"].endswith("best.pth")


def test_another_model_forgets_the_layer_that_was_chosen(home, open_page, weights, slow_looks):
    at = open_page("mask", dataset=DEMO)
    layer = next(box for box in at.selectbox if box.label == "Layer")
    layer.set_value(layer.options[-1]).run()
    assert at.session_state["layer"] == layer.options[-1]
    assert layer.options[-1] not in dict(build("resnet20", 2).named_modules())

    at.switch_page("load/page.py").run()
    with_checkpoint(at, weights)
    assert at.session_state["layer"] == ""
    at.switch_page("mask/page.py").run()

    assert not at.exception
    layer = next(box for box in at.selectbox if box.label == "Layer")
    assert layer.format_func(layer.value) == "layer3"


def test_a_model_that_has_seen_all_training_pictures_is_validated_on_test_pictures(
    home, open_page, folder, weights
):
    at = with_checkpoint(open_page("load", dataset="folder", root=folder), weights, "folder")
    given = {"dataset": "folder", "root": folder, "model": weights}
    own = len(cached.bundle(settings(given)).tests["test"])

    at.checkbox(key="validation_folder").check().run()

    assert not at.exception
    assert at.session_state["validation"] == "test"
    now = settings({**given, "validation": at.session_state["validation"]})
    assert len(cached.bundle(now).tests["test"]) == own - own // 2
    assert address(at)["validation"] == "test"
    assert elsewhere_and_back(at).checkbox(key="validation_folder").value


def test_where_several_test_sets_could_validate_the_question_is_not_asked(home, open_page, weights):
    at = with_checkpoint(open_page("load", dataset=DEMO), weights)

    assert not at.checkbox


def test_an_address_may_not_make_up_another_validation(home, open_page):
    at = open_page("load", dataset=DEMO, validation="all of it")

    assert not at.exception
    assert at.session_state["validation"] == "own"


def test_own_pictures_can_be_given_another_name_and_keep_it(home, open_page, folder, a_run):
    given = {"dataset": "folder", "root": folder}
    a_run(config=settings(given), state="failed")
    at = open_page("load", **given, run="a-run")
    field = f"title_{folder}"
    assert at.text_input(key=field).placeholder == Path(folder).name

    at.text_input(key=field).set_value(" Red, not *blue* ").run()

    assert not at.exception
    assert address(at) == {**given, "title": "Red, not *blue*", "run": "a-run"}
    assert any(r"Red, not \*blue\*" in link.value for link in at.get("page_link"))
    elsewhere_and_back(at)
    assert at.text_input(key=field).value == "Red, not *blue*"
    assert planned_title(at) == "Red, not *blue*"

    at.text_input(key=field).set_value("").run()

    assert address(at) == {**given, "run": "a-run"}


def planned_title(at: AppTest) -> str | None:
    return settings({name: at.session_state[name] for name in ("dataset", "root", "title")}).title


def test_other_pictures_do_not_take_over_the_name(home, open_page, folder, tmp_path):
    shutil.copytree(folder, tmp_path / "others")
    at = open_page("load", dataset="folder", root=folder, model="train", title="Mine")
    assert address(at)["title"] == "Mine"

    at.text_input(key="own_root").set_value(str(tmp_path / "others")).run()

    assert not at.exception
    assert address(at) == {"dataset": "folder", "root": str(tmp_path / "others")}
