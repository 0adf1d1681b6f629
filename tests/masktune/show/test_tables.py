"""One table: shown and saved from the same cells."""

from masktune.show.tables import Cell, Column, Table, csv, html, points_cell, share_cell

HERD = Table(
    name="The <herd>",
    columns=(
        Column("Group", ("label", "attribute")),
        Column("Seed", shown=False),
        Column("Right", ("right",), hint="of all <pictures>"),
        Column("Drawn", (), left=True),
    ),
    rows=[
        (Cell("cow, <b>", "worst", ("cow", "=1+1")), Cell("7"), share_cell(0.25), Cell("x")),
        (Cell("camel", values=("camel", None)), Cell("7"), share_cell(None), Cell("y")),
    ],
)


def test_every_text_is_escaped_and_what_is_for_the_file_only_is_not_shown():
    shown = html(HERD)

    assert "cow, &lt;b&gt;<small>worst</small></th><td>25.0%</td>" in shown
    assert 'title="of all &lt;pictures&gt;"' in shown
    assert 'aria-label="The &lt;herd&gt;"' in shown
    assert "Seed" not in shown
    assert shown.count("<td>") == 2
    assert shown.count('<td class="left">') == 2
    assert "data-csv" not in shown


def test_the_file_holds_full_values_and_nothing_that_is_only_drawn():
    assert csv(HERD) == b"label,attribute,Seed,right\ncow,'=1+1,7,0.25\ncamel,,7,\n"


def test_a_page_without_a_server_carries_the_same_file():
    assert "cow,&#39;=1+1,7,0.25\ncamel,,7,\n" in html(HERD, saved=True)


def test_tables_with_the_same_columns_become_one_file():
    assert csv(HERD, HERD, end="\r\n").count(b"\r\n") == 5
    assert csv(HERD, HERD).count(b"label") == 1


def test_a_difference_is_shown_in_points_and_saved_as_a_fraction():
    cell = points_cell(0.5, 0.25)

    assert (cell.text, cell.values) == ("−25.0", (-0.25,))
