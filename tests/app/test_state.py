"""Links are true: the address carries the state, a run brings its settings, a page drops none."""

import random
import shutil
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from app.state import CARRIED, sensible
from masktune.checkpoints.settings import OPTIONS, settings
from masktune.config import MaskingConfig, RivalConfig, options
from masktune.datasets.catalogue import CATALOGUE
from masktune.errors import ConfigError
from masktune.runs.folder import RunFolder
from tests.app.conftest import DEMO, ROOT, TRAINS, address, demo_config
from tests.layouts import picture
from tests.masktune.checkpoints.test_settings import NEEDS, OTHER


@pytest.mark.parametrize("name", sorted(set(OPTIONS) - {"dataset"}))
def test_every_setting_goes_from_the_address_to_the_page_and_back(name, home, open_page):
    carried = {"dataset": DEMO, "model": "train", **NEEDS.get(name, {}), name: OTHER[name]}
    carried = {key: str(value) for key, value in carried.items()}

    at = open_page("start", **carried)

    assert not at.exception
    assert at.session_state[name] == OTHER[name]
    if not CATALOGUE[carried["dataset"]].bundled:
        del carried["model"]  # nothing else is possible
    assert address(at) == carried


@pytest.mark.parametrize("page", ["start", "mask", "abstain"])
def test_what_is_looked_at_and_how_is_carried_too(
    page, home_with_run, finished_run, open_page, slow_looks
):
    carried = {"dataset": DEMO, "run": finished_run.name, "test": "original", "coverage": "75"}
    carried |= {"mask_pictures": "12", "mask_by": "2", "draw": "3", "abstain_score": "before"}
    carried |= {"mask_order": "unsure", "mask_order_k": "1.25"}
    carried |= {"columns": '["explainer:gradcam", "layer:features.3"]'}
    carried |= {"picture": "original/7", "picture_other": "train/8", "picture_flips": "0f"}
    carried |= {"controls": "True", "abstain_intervals": "True"}
    carried |= {"tournament_methods": '["masktune", "dfr"]', "tournament_ks": "1,2"}
    carried |= {"tournament_tries": "focus=1,10"}
    carried |= {"tournament_rates": "1,3", "tournament_seeds": "3", "tournament": "some"}
    carried |= {"grid_strategies": '["random", "heat"]', "grid_ks": "2", "grid_rates": "0.1"}
    carried |= {"grid_seeds": "7", "load_part": "validation", "runs_list_page": "2"}
    carried |= {"scrub_view": "heat", "scrub_selected": "3", "scrub_group": "5–9, no square"}
    carried |= {"scrub_order": "most", "scrub_column": "2"}
    carried |= {"abstain_group": "2", "abstain_page": "2"}

    at = open_page(page, **carried)

    assert not at.exception
    assert address(at) == carried


def test_what_cannot_be_looked_at_is_as_usual(home_with_run, finished_run, open_page, slow_looks):
    odd = {"coverage": "7", "mask_pictures": "7", "mask_by": "x", "draw": "", "abstain_score": "x"}
    odd |= {"tournament_seeds": "99", "together": "x", "columns": "[" * 3999}
    odd |= {"scrub_view": "x-ray", "scrub_selected": "-1", "scrub_every": "x", "scrub_group": "x"}
    odd |= {"scrub_order": "", "scrub_column": "1", "abstain_group": "99", "abstain_page": "0"}
    odd |= {"grid_strategies": '{"heat": 1}', "abstain_kind": "x", "compare_looks_page": "1.5"}

    at = open_page("abstain", dataset=DEMO, run=finished_run.name, test="original", **odd)
    at.switch_page("mask/page.py").run()

    assert not at.exception
    assert address(at) == {"dataset": DEMO, "run": finished_run.name, "test": "original"}


@pytest.mark.parametrize("said", ['["magic"]', '["heat", "heat", "magic"]', "heat", "[[]]"])
def test_a_grid_of_what_nobody_knows_is_of_what_is_known(said, home, open_page):
    at = open_page("runs", dataset=DEMO, grid_strategies=said, grid_ks="x" * 99, grid_seeds="nan")

    assert not at.exception
    assert at.multiselect(key="grid_strategies").value in ([], ["heat"])


def test_a_link_to_load_says_on_which_pictures_the_model_is_asked(home, open_page, slow_looks):
    at = open_page("load", dataset=DEMO, load_part="validation")
    odd = open_page("load", dataset=DEMO, load_part="summer")

    (part,) = (one for one in at.segmented_control if one.label == "Evaluate on")
    assert part.value == "validation"
    assert address(at)["load_part"] == "validation"
    assert not odd.exception
    (part,) = (one for one in odd.segmented_control if one.label == "Evaluate on")
    assert part.options[part.indices[0]] == "biased"
    assert "load_part" not in address(odd)
    part.set_value("validation").run()
    assert address(odd)["load_part"] == "validation"
    odd.segmented_control(key="load_part").set_value("").run()
    assert "load_part" not in address(odd)  # the first test set, as nobody had chosen


NONSENSE = ("", "x", "-1", "0", "1e9", "9" * 30, "[]", '["x"]', "None", "True", "<b>", "…")


@pytest.mark.parametrize("page", ["load", "mask", "compare", "abstain", "runs"])
def test_no_nonsense_in_what_an_address_carries_takes_a_page_down(
    page, home_with_run, finished_run, open_page, slow_looks
):
    names = [name for name in CARRIED if name not in ("run", "training", "test", "shown")]
    draw = random.Random(page)
    for _ in range(4):
        said = {name: draw.choice(NONSENSE) for name in names}

        at = open_page(page, dataset=DEMO, run=finished_run.name, test="original", **said)

        assert not at.exception, said


def test_methods_that_nobody_knows_are_not_set_side_by_side(home, open_page):
    at = open_page("finetune", dataset=DEMO, tournament_methods='["dfr", "magic"]')

    assert not at.exception
    assert at.multiselect(key="tournament_pick").value == ["dfr"]


def test_a_choice_too_long_for_an_address_is_not_in_it(home, open_page):
    at = open_page("start", dataset=DEMO)
    at.session_state["compared"] = ["a" * 4000]
    at.run()

    assert address(at) == {"dataset": DEMO}


def test_what_is_as_usual_makes_the_address_no_longer(home, open_page):
    at = open_page("start", dataset=DEMO, k="2.0", rounds="1", model="bundled", coverage="90")

    assert address(at) == {"dataset": DEMO}


def test_opening_a_run_brings_all_its_settings(home, open_page):
    config = settings(
        {
            **OTHER,
            "dataset": DEMO,
            "strategy": "heat",
            "model": None,
            "recipe": DEMO,
            "top_fraction": None,
            "root": None,
            "validation": "own",
            **dict.fromkeys(
                (
                    "momentum",
                    "decay_at",
                    "decay_factor",
                    "stamp",
                    "correlation",
                    "regions",
                    "class_order",
                )
            ),
            "rival": "masktune",
            "start": None,
            **dict.fromkeys(option.name for option in options(RivalConfig)),
        }
    )
    RunFolder.claim(home / "runs" / "a-run", config)

    at = open_page("start", run="a-run")

    assert {name: at.session_state[name] or None for name in OPTIONS} == {
        name: option.of(config) or None for name, option in OPTIONS.items()
    }
    again = open_page("start", **address(at))
    assert address(again) == address(at)


def opened_with_seed_3(home, finished_run) -> str:
    """Make a run that trained its own model on another split."""
    shutil.copytree(finished_run, home / "runs" / "third")
    config = replace(demo_config(masking=MaskingConfig(k=1.25)), model=None, seed=3)
    RunFolder(home / "runs" / "third").write_json("config.json", config.to_json())
    return "third"


def test_looking_at_load_changes_nothing_of_what_was_opened(home, finished_run, open_page):
    run = opened_with_seed_3(home, finished_run)

    at = open_page("load", run=run)

    assert not at.exception
    now = {name: at.session_state[name] for name in ("run", "seed", "k")}
    assert now == {"run": run, "seed": 3, "k": 1.25}
    assert at.session_state["model"] == str(home / "runs" / run / "before.safetensors")


def test_the_k_of_one_demo_does_not_go_on_into_the_next(home, open_page):
    at = open_page("load", dataset=DEMO, k="1.5")
    at.selectbox(key="load_dataset_demo").set_value("two-squares-mnist-5k").run()

    assert not at.exception
    assert (at.session_state["k"], at.session_state["rounds"]) == (2.0, 3)


def test_mask_takes_the_model_that_a_run_has_trained(a_run, open_page, finished_run, slow_looks):
    config = replace(TRAINS, training=replace(TRAINS.training, epochs=2))
    path = a_run(config=config, state="running", stage="finetune")
    shutil.copy(finished_run / "before.safetensors", path)

    at = open_page("mask", dataset=DEMO, model="train", epochs="2", run="a-run")

    assert not at.exception
    assert at.session_state["model"] == str(path / "before.safetensors")
    assert any("training pictures" in header.value for header in at.header)


def ticked(at: AppTest) -> list[str]:
    links = [link.proto for link in at.get("page_link")]
    return [link.label.split(" :")[0] for link in links if "check_circle" in link.icon]


def test_the_navigation_ticks_what_was_done_and_nothing_else(
    home_with_run, finished_run, open_page
):
    assert ticked(open_page("start", dataset=DEMO)) == ["Load"]
    assert ticked(open_page("start", dataset=DEMO, run=finished_run.name, k="1.0")) == [
        "Load",
        "Finetune",
    ]
    at = open_page("compare", dataset=DEMO, run=finished_run.name)
    assert ticked(at) == ["Load", "Mask", "Finetune"]

    at.switch_page("abstain/page.py").run()

    assert ticked(at) == ["Load", "Mask", "Finetune", "Compare"]


@pytest.mark.slow
def test_runs_that_were_taken_away_stay_away(home_with_run, finished_run, open_page):
    for name in ("second", "third"):
        shutil.copytree(finished_run, home_with_run / "runs" / name)
    at = open_page("compare", dataset=DEMO, run=finished_run.name)
    assert sorted(at.multiselect[0].value) == ["second", "third"]

    at.multiselect[0].set_value(["third"]).run()
    at.switch_page("mask/page.py").run()
    at.switch_page("compare/page.py").run()
    assert at.multiselect[0].value == ["third"]
    at.multiselect[0].set_value([]).run()
    at.switch_page("mask/page.py").run()
    at.switch_page("compare/page.py").run()

    assert not at.exception
    assert at.multiselect[0].value == []


@pytest.mark.parametrize(
    ("page", "kind", "key", "value"),
    [
        ("abstain", "segmented_control", "abstain_pick", "before"),
        ("abstain", "segmented_control", "abstain_kind", "Answered and right"),
        ("abstain", "slider", "coverage", 75),
        ("compare", "segmented_control", "compare_flips_view", "Heat before"),
        ("mask", "selectbox", "mask_pictures", 12),
    ],
)
def test_what_was_chosen_is_still_chosen_after_leaving_the_page(
    page, kind, key, value, home_with_run, finished_run, open_page, slow_looks
):
    at = open_page(page, dataset=DEMO, run=finished_run.name)
    getattr(at, kind)(key=key).set_value(value).run()
    at.switch_page("start/page.py").run()

    at.switch_page(f"{page}/page.py").run()

    assert not at.exception
    assert getattr(at, kind)(key=key).value == value


@pytest.mark.parametrize(
    ("page", "next_page", "kind", "key", "value"),
    [
        ("compare", "abstain", "segmented_control", "test", "original"),
        ("abstain", "compare", "segmented_control", "test", "original"),
        ("mask", "finetune", "selectbox", "statistics", "all"),
    ],
)
def test_what_was_chosen_on_one_page_is_chosen_on_the_next(
    page, next_page, kind, key, value, home_with_run, finished_run, open_page, slow_looks
):
    at = open_page(page, dataset=DEMO, run=finished_run.name)
    getattr(at, kind)(key=key).set_value(value).run()

    at.switch_page(f"{next_page}/page.py").run()

    assert not at.exception
    assert getattr(at, kind)(key=key).value == value
    assert address(at)[key] == value


def test_the_first_page_has_the_address_start_too(home):
    at = AppTest.from_file(str(ROOT / "app" / "main.py"), default_timeout=120)
    at._page_hash = calc_hash("start")

    at.run()

    assert not at.exception
    assert at.title[0].value == "See what your model leans on. Then hide it."


def test_what_a_link_says_in_vain_is_named_on_the_page_that_it_opens(home, open_page):
    at = open_page("start", dataset=DEMO, k="abc", rounds="2", coverage="7", colour="blue")

    (notice,) = [info.value for info in at.info if "Not understood in the link" in info.value]
    assert "k=abc, coverage=7, colour=blue" in notice
    assert "rounds" not in notice
    at.switch_page("load/page.py").run()
    assert not any("Not understood" in info.value for info in at.info)


def test_a_k_beyond_3_in_a_link_is_named_and_left_out(home, open_page):
    at = open_page("start", dataset=DEMO, k="9")

    assert any("Not understood in the link, and left out: k=9" in one.value for one in at.info)
    assert at.session_state.k == 2.0


def test_a_layer_in_a_link_that_the_model_has_not_is_named_and_left_out(
    home, open_page, slow_looks
):
    at = open_page("mask", dataset=DEMO, layer="zzz", colour="blue")

    assert not at.exception
    notice = "Not understood in the link, and left out: colour=blue, layer=zzz"
    assert any(notice in one.value for one in at.info)
    assert at.session_state.layer == ""


def test_a_link_to_pictures_that_nobody_knows_says_so(home, open_page):
    at = open_page("start", dataset="nope", k="1.5")

    assert any("dataset=nope, k=1.5" in info.value for info in at.info)
    assert not any("Not understood" in info.value for info in open_page("start").info)


def test_a_link_to_a_model_that_is_gone_is_no_finished_step(home, open_page):
    at = open_page("mask", dataset=DEMO, model="/nowhere/model.pth")
    other = open_page("finetune", dataset=DEMO)

    assert not at.exception
    assert len(at.error) == 1
    links, whole = (
        {one.proto.label: one.proto.icon for one in a.get("page_link")} for a in (at, other)
    )
    assert "Choose pictures and a model" in links
    load = next(label for label in links if label.startswith("Load "))
    assert (links[load], whole[load]) == (":material/counter_1:", ":material/check_circle:")


def test_a_weight_decay_beyond_all_sense_is_refused():
    with pytest.raises(ConfigError, match=r"The weight decay is 1,000,000,000\."):
        sensible({"dataset": DEMO, "weight_decay": 1e9})


def test_a_picture_of_other_pictures_is_put_aside_and_one_beside_a_run_is_kept(
    home_with_run, finished_run, open_page
):
    at = open_page("start", run=finished_run.name, picture="original/7")
    assert address(at)["picture"] == "original/7"

    at = open_page("start", dataset="cows-and-camels", picture="train/3")
    at.session_state["picture"] = "train/3"
    at.button[0].click().run()  # the demo

    assert at.session_state["dataset"] == DEMO
    assert "picture" not in address(at)


def among(at: AppTest) -> dict[str, object]:
    """Give what was chosen for the pictures that are loaded."""
    names = ("compared", "columns", "picture", "picture_other", "mask_by", "mask_order")
    usual = (None, (), "", -1, "training")
    return {n: None if at.session_state[n] in usual else at.session_state[n] for n in names}


CHOSEN = {
    "compared": '["some"]',
    "columns": '["explainer:gradcam"]',
    "picture": "train/7",
    "picture_other": "train/8",
    "mask_by": "1",
    "mask_order": "heat:1",
}
NOTHING = dict.fromkeys(CHOSEN)
KEPT = {"compared": ["some"], "columns": ["explainer:gradcam"], "mask_by": 1}
KEPT |= {"mask_order": "heat:1"}


def own_folder(place, letter: str) -> str:
    for label in (0, 1):
        for number in range(12):
            picture(place / f"class {label}" / f"{letter}{number}.jpg", label=label)
    return str(place)


def test_what_was_chosen_in_one_folder_does_not_go_on_into_another(home, open_page, tmp_path):
    one, other = (own_folder(tmp_path / name, name) for name in ("a", "b"))
    at = open_page("load", dataset="folder", root=one, model="train", k="1.5", **CHOSEN)
    assert among(at) == {**KEPT, "picture": "train/7", "picture_other": "train/8"}

    at.text_input(key="own_root").set_value(other).run()

    assert not at.exception
    assert at.session_state["root"] == other
    assert (among(at), at.session_state["k"]) == (NOTHING, 2.0)


def test_opening_a_run_on_other_pictures_puts_aside_what_was_chosen_for_the_earlier_ones(
    a_run, open_page
):
    a_run(state="done")
    at = open_page("runs", dataset="two-squares-mnist-5k", **CHOSEN)

    at.button(key="open_a-run").click().run()

    assert not at.exception
    assert (at.session_state["dataset"], among(at)) == (DEMO, NOTHING)


@pytest.mark.parametrize(
    ("changes", "pictures"),
    [
        ({"k": "1.5"}, {"picture": "train/7", "picture_other": "train/8"}),
        ({"normalise": "imagenet"}, {"picture": "train/7", "picture_other": "train/8"}),
        ({"seed": "3"}, {"picture": None, "picture_other": None}),
        ({"exceptions": "authors"}, {"picture": None, "picture_other": None}),
    ],
    ids=lambda told: next(iter(told)),
)
def test_a_run_on_the_same_pictures_takes_numbers_along_where_they_name_the_same_ones(
    changes, pictures, a_run, open_page
):
    a_run(state="done")
    at = open_page("runs", dataset=DEMO, **changes, **CHOSEN)

    at.button(key="open_a-run").click().run()

    assert not at.exception
    assert among(at) == {**KEPT, **pictures}
