"""What names the definitions that fit comes up, though its own words do not say what was asked."""

from pathlib import Path

import pytest

from holdfast.analysis.search import references
from holdfast.analysis.search.references import ChunkReader
from holdfast.analysis.search.searcher import Searcher
from tests.analysis.search.tree import Tree

CARRIERS = ("Postal", "Courier", "Bicycle", "Locker", "Drone")
CARRIER = '''class {name}Carrier:
    """Brings parcels to the door."""

    def price_of_parcel(self, parcel):
        weight = parcel.weight + parcel.packing
        return self.rate * weight
'''
FILES = {
    **{f"shop/carriers/{name.lower()}.py": CARRIER.format(name=name) for name in CARRIERS},
    "shop/wiring.py": "\n".join(
        [
            *(f"from shop.carriers.{name.lower()} import {name}Carrier" for name in CARRIERS),
            "",
            "",
            "def build_everything(environment):",
            "    known = {}",
            *(f'    known["{name.lower()}"] = {name}Carrier()' for name in CARRIERS),
            "    return known[environment.choice]",
            "",
        ]
    ),
    "shop/imports.py": "\n".join(f"from shop.carriers.{name.lower()} import {name}Carrier" for name in CARRIERS) + "\n",
    "shop/squash.py": """def squash_ends(value, most):
    kept = value[: most // 2]
    rest = value[-(most - len(kept)) :]
    return kept + rest
""",
    "tests/test_squash.py": '''from shop.squash import squash_ends


def test_long_titles_are_shortened_in_the_middle():
    """A long title is shortened in the middle, both ends stay readable."""
    assert squash_ends("a very long title", 6) == "a vtle"
''',
    "shop/orders.py": """def cancel_order(order, reason):
    order.state = "cancelled"
    order.reason = reason
    return order.refund()
""",
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    folder = tmp_path_factory.mktemp("references")
    made = Tree(folder / "project", folder / "state").write(FILES)
    assert made.index().status == "completed"
    return made


def test_a_task_finds_the_place_that_names_the_others(tree: Tree) -> None:
    asked = "add another way to bring parcels to the door: where are the existing ones"
    found = {hit.path: hit.why for hit in tree.ask(asked).hits}
    assert "listing" in found["shop/wiring.py"]
    assert "shop/imports.py" not in found


def test_code_that_a_fitting_test_calls_is_found(tree: Tree) -> None:
    found = {hit.path: hit.why for hit in tree.ask("where are long titles shortened in the middle").hits}
    assert "tested" in found["shop/squash.py"]
    assert "shop/orders.py" not in found


def weigh(tree: Tree, how: str, scores: dict[str, float]) -> dict[str, float]:
    """The weight of each file, where the first chunk of some files fits so well."""
    searcher = Searcher(tree.place)
    with searcher.read() as db:
        reader = ChunkReader(db, searcher._text_of)
        chunks = dict(db.execute("select f.path, min(c.id) from chunks c join files f on f.id = c.file group by 1"))
        reader.load(chunks.values())
        weighed = getattr(references, how)(db, reader, {chunks[path]: score for path, score in scores.items()})
        return {reader[chunk].path: weight for chunk, weight in weighed.items()}


def test_imports_alone_are_no_list(tree: Tree) -> None:
    fitting = {f"shop/carriers/{name.lower()}.py": 1.0 for name in CARRIERS}
    assert weigh(tree, "weigh_listings", fitting) == {"shop/wiring.py": 1.0}
    assert weigh(tree, "weigh_listings", dict(list(fitting.items())[:2])) == {}


def test_only_tests_speak_for_what_they_name(tree: Tree) -> None:
    assert weigh(tree, "weigh_tested", {"tests/test_squash.py": 0.5}) == {"shop/squash.py": 0.5}
    assert weigh(tree, "weigh_tested", {"shop/wiring.py": 0.5}) == {}


def test_a_filter_holds_for_what_is_found_by_reference(tree: Tree) -> None:
    asked = "add another way to bring parcels to the door: where are the existing ones"
    assert {Path(hit.path).parts[:2] for hit in tree.ask(asked, path="shop/carriers").hits} == {("shop", "carriers")}
