import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from masktune.data.csvs import find_csv, read_csv
from masktune.errors import DataError

PLAIN = "filename,y,a,split\nx.png,0,1,0\ny.png,1,0,1\nz.png,1,1,2\n"


def listed(tmp_path, text, *, name="metadata.csv", encoding="utf-8"):
    (tmp_path / name).write_bytes(text.encode(encoding))
    return read_csv(tmp_path / name)


def told(listing):
    """Give (file, label, attribute, split) of every row, as numbers."""
    return [
        (path.relative_to(listing.root).as_posix(), label, attribute, split)
        for path, label, split, attribute in listing.rows
    ]


EXPECTED = [
    ("x.png", 0, 1, "train"),
    ("y.png", 1, 0, "validation"),
    ("z.png", 1, 1, "test"),
]


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        PLAIN.replace("\n", "\r\n"),
        PLAIN.replace(",", ";"),
        PLAIN.replace(",", "\t"),
        "\ufeff" + PLAIN,
        PLAIN.replace("filename", '"File Name"').replace("y,", "Label ,", 1),
        '"filename","y","a","split"\n"x.png","0","1","0"\n"y.png","1","0","1"\nz.png,1,1,2',
        PLAIN.replace("\n", "\n\n"),
        PLAIN.replace("0,1,0", " 0.0 ,1.0,0.0"),
        PLAIN.replace("\n", ",\n"),
        PLAIN.replace("1,0,1", "1,0,Valid").replace("0,1,0", "0,1,TR").replace("1,1,2", "1,1,te"),
        "id,a,y,split,img-filename\n9,1,0,0,./x.png\n8,0,1,1,y.png\n7,1,1,2,z.png\n",
    ],
)
def test_a_list_may_be_written_in_many_ways(text, tmp_path):
    listing = listed(tmp_path, text)

    assert told(listing) == EXPECTED
    assert listing.classes == ("0", "1")
    assert listing.attributes == ("0", "1")


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
def test_old_encodings_are_read_and_told_of(encoding, tmp_path):
    listing = listed(tmp_path, PLAIN.replace("x.png", "é.png"), encoding=encoding)

    assert told(listing)[0][0] == "é.png"
    assert any(encoding.upper() in finding.upper() for finding in listing.findings)


def test_what_was_recognised_is_said(tmp_path):
    assert listed(tmp_path, PLAIN).findings == (
        "Read as: the list metadata.csv, picture from 'filename', label from 'y', attribute from "
        "'a', split from 'split'.",
        "Classes in order: 0, 1.",
    )
    assert "metadata.csv is separated by semicolons." in (
        listed(tmp_path, PLAIN.replace(",", ";")).findings
    )


def test_of_two_columns_for_one_thing_the_other_is_named(tmp_path):
    listing = listed(
        tmp_path, "img_filename,y,class,place\nx.png,0,cow,sand\ny.png,1,camel,grass\n"
    )

    assert listing.classes == ("0", "1")
    assert "Columns not used: class." in listing.findings


def test_names_are_classes_in_order_and_numbers_are_sorted_as_numbers(tmp_path):
    names = listed(tmp_path, "path,label\na.png,dog\nb.png,cat\n")
    numbers = listed(tmp_path, "path,label\na.png,10\nb.png,9\nc.png,010\n")

    assert (names.classes, [r.label for r in names.rows]) == (("cat", "dog"), [1, 0])
    assert (numbers.classes, [r.label for r in numbers.rows]) == (("9", "10"), [1, 0, 1])


def test_without_attribute_and_split_all_train_and_nothing_is_known(tmp_path):
    listing = listed(tmp_path, "file,target\na.png,0\nb.png,1\n")

    assert told(listing) == [("a.png", 0, -1, "train"), ("b.png", 1, -1, "train")]
    assert listing.attributes == ()
    assert "worst class stands in" in listing.findings[0]


def test_attributes_may_be_negative_as_celeba_has_them(tmp_path):
    listing = listed(tmp_path, "file,y,attr\na.png,0,-1\nb.png,1,1\n")

    assert listing.attributes == ("-1", "1")


def test_pictures_are_found_in_images_beside_the_list_and_endings_are_added(tmp_path):
    (tmp_path / "images").mkdir()
    for name in ("1", "2"):
        (tmp_path / "images" / f"{name}.jpg").touch()

    listing = listed(tmp_path, "image_id,y\n1,0\n2,1\n3,1\n")

    assert [row[0] for row in told(listing)] == ["images/1.jpg", "images/2.jpg", "images/3.jpg"]
    assert "The pictures lie in the folder 'images' beside metadata.csv." in listing.findings
    assert "File names are listed without their ending .jpg." in listing.findings


def test_windows_writes_paths_the_other_way(tmp_path):
    listing = listed(tmp_path, "path,y\nimages\\a.png,0\nimages\\b.png,1\n")

    assert told(listing)[0][0] == "images/a.png"


def test_files_listed_twice_are_told_of_and_more_so_across_parts(tmp_path):
    text = "path,y,split\na.png,0,0\na.png,0,2\nb.png,1,0\nb.png,1,0\nc.png,1,0\n"

    assert listed(tmp_path, text).findings[-1] == (
        "2 files are listed more than once (a.png), 1 of them in more than one part."
    )


def test_a_line_is_numbered_as_an_editor_numbers_it(tmp_path):
    text = 'path,y,note\na.png,0,"two\nlines"\nb.png,-3,\n'

    with pytest.raises(DataError, match=r"Line 4 of metadata\.csv, column 'y': the label -3"):
        listed(tmp_path, text)


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (["metadata.csv", "labels.csv", "z.csv"], "metadata.csv"),
        (["Metadata.CSV"], "Metadata.CSV"),
        (["metadata_birds.csv", "labels.csv"], "metadata_birds.csv"),
        (["labels.csv", "a.csv"], "labels.csv"),
        (["only.tsv", ".hidden.csv", "a.txt"], "only.tsv"),
        (["a.txt"], None),
    ],
)
def test_the_list_of_a_folder_is_found_by_name(names, chosen, tmp_path):
    for name in names:
        (tmp_path / name).touch()

    found = find_csv(tmp_path)

    assert (found.name if found else None) == chosen


def test_of_several_lists_none_is_guessed(tmp_path):
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).touch()

    with pytest.raises(DataError, match=r"2 CSV files .*: a\.csv, b\.csv"):
        find_csv(tmp_path)


GOOD = (["a.png", "b/c.png", "..a.png"], ["0", "1", "x"], ["0", "1", "2", "train", "dev"])
BAD = (["../x.png", "a/../../x", "/x", "C:x", "~x", ""], ["-1", "", " "], ["3", "-1", "", "all"])


@settings(max_examples=100, deadline=None)
@given(
    rows=st.lists(st.tuples(*(st.sampled_from(cells) for cells in GOOD)), min_size=1, max_size=8),
    spoilt=st.none() | st.tuples(st.integers(0, 7), st.integers(0, 2), st.integers(0, 5)),
)
def test_a_list_is_read_unless_a_cell_is_bad_and_then_that_cell_is_named(
    rows, spoilt, tmp_path_factory
):
    path = tmp_path_factory.getbasetemp() / "metadata.csv"
    cells = [list(row) for row in rows]
    if spoilt is not None:
        number, column, choice = spoilt[0] % len(rows), spoilt[1], spoilt[2]
        cells[number][column] = BAD[column][choice % len(BAD[column])]
    path.write_text("\n".join(["path,y,split", *(",".join(row) for row in cells)]))

    if spoilt is not None:
        name = ("path", "y", "split")[column]
        with pytest.raises(DataError, match=f"Line {number + 2} of .*, column '{name}'"):
            read_csv(path)
    elif len({label for _, label, _ in rows}) < 2:
        with pytest.raises(DataError, match="Every picture"):
            read_csv(path)
    else:
        listing = read_csv(path)
        assert [listing.classes[row.label] for row in listing.rows] == [r[1] for r in rows]


@settings(max_examples=100, deadline=None)
@given(content=st.binary(max_size=60))
def test_no_bytes_let_anything_but_a_plain_word_out(content, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "metadata.csv"
    path.write_bytes(b"path,y\n" + content)

    with contextlib.suppress(DataError):
        assert len(read_csv(path).classes) > 1


def test_a_value_a_picture_is_no_attribute(tmp_path):
    rows = "".join(f"{n}.png,{n % 2},{n}\n" for n in range(101))

    with pytest.raises(
        DataError, match=r"Column 'group' of metadata\.csv has 101 different"
    ) as caught:
        listed(tmp_path, f"filename,y,group\n{rows}")

    assert "'group'" in caught.value.remedy


def test_a_hundred_attributes_are_possible(tmp_path):
    rows = "".join(f"{n}.png,{n % 2},{n % 100}\n" for n in range(200))

    assert len(listed(tmp_path, f"filename,y,group\n{rows}").attributes) == 100
