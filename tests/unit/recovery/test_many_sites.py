"""Tables and tests over many sites, against values computed by hand and by other formulas."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest

from recollect.cli.main import run as main
from recollect.recovery.manysites import Observation, describe, measure_site, tables
from stores import fill

pytest.importorskip("scipy", reason="SciPy is not installed (the extra stats)")

from recollect.recovery.significance import chi_square, regression, wilcoxon


def exact_wilcoxon(differences: list[int]) -> tuple[float, float]:
    """By counting all signs: ranks of distinct magnitudes, the smaller sum, its share of all 2^n."""
    ranks = {value: place + 1 for place, value in enumerate(sorted(map(abs, differences)))}
    total = sum(ranks.values())
    plus = sum(ranks[abs(d)] for d in differences if d > 0)
    least = min(plus, total - plus)
    sums = [
        sum(rank for rank, sign in zip(ranks.values(), signs, strict=True) if sign)
        for signs in product((0, 1), repeat=len(ranks))
    ]
    return least, min(1.0, 2 * sum(one <= least for one in sums) / len(sums))


@pytest.mark.parametrize("seed", range(4))
def test_wilcoxon_is_that_of_all_signs(seed: int) -> None:
    rng = random.Random(seed)
    differences = [d * rng.choice((-1, 1)) for d in rng.sample(range(1, 50), 8)]
    test = wilcoxon([(float(d), 0.0) for d in differences])
    assert test is not None
    assert (test.statistic, test.p) == pytest.approx(exact_wilcoxon(differences))


def test_six_sites_that_all_differ_in_one_direction() -> None:
    test = wilcoxon([(n + 1.0, float(n * n) / 100) for n in range(6)])
    assert test is not None and test.statistic == 0 and test.p == pytest.approx(2 / 2**6)
    assert wilcoxon([(1.0, 1.0)]) is None


def test_chi_square_is_the_formula_of_four_fields() -> None:
    a, b, c, d = 11, 89, 730, 270  # 11% of dynamic and 73% of static resources (McCown 2007, section VII.3)
    by_hand = (a + b + c + d) * (a * d - b * c) ** 2 / ((a + b) * (c + d) * (a + c) * (b + d))
    test = chi_square((a, b), (c, d))
    assert test is not None and test.statistic == pytest.approx(by_hand)
    # With one degree of freedom it is the square of a normal variable.
    assert test.p == pytest.approx(math.erfc(math.sqrt(by_hand / 2)), rel=1e-6)
    assert chi_square((0, 0), (1, 2)) is None and chi_square((0, 3), (0, 2)) is None


def test_the_regression_is_that_of_the_normal_equations() -> None:
    rng = random.Random(5)
    rows = [(rng.randint(0, 9), rng.randint(0, 5)) for _ in range(40)]
    outcomes = [int(rng.random() < 0.9 - 0.1 * x) for x, _ in rows]
    model = regression(
        [(float(x), float(y), 7.0) for x, y in rows], [float(o) for o in outcomes], ("x", "y", "constant")
    )
    assert model is not None and [name for name, _, _ in model.parameters] == ["intercept", "x", "y"]
    exact = normal_equations([(1, x, y) for x, y in rows], outcomes)
    assert [estimate for _, estimate, _ in model.parameters] == pytest.approx([float(one) for one in exact])
    fitted = [sum(e * v for e, v in zip(exact, (1, x, y), strict=True)) for x, y in rows]
    mean = Fraction(sum(outcomes), len(outcomes))
    rest = sum((o - f) ** 2 for o, f in zip(outcomes, fitted, strict=True))
    assert model.r_squared == pytest.approx(float(1 - rest / sum((o - mean) ** 2 for o in outcomes)))
    assert all(0 <= p <= 1 for _, _, p in model.parameters) and model.parameters[1][2] < 0.05
    assert regression([(1.0,), (2.0,)], [1.0, 1.0], ("x",)) is None


def normal_equations(rows: list[tuple[int, ...]], outcomes: list[int]) -> list[Fraction]:
    """Exact least squares by elimination."""
    n = len(rows[0])
    system = [
        [Fraction(sum(r[i] * r[j] for r in rows)) for j in range(n)]
        + [Fraction(sum(r[i] * o for r, o in zip(rows, outcomes, strict=True)))]
        for i in range(n)
    ]
    for i in range(n):
        system[i] = [value / system[i][i] for value in system[i]]
        for j in range(n):
            if j != i:
                system[j] = [a - system[j][i] * b for a, b in zip(system[j], system[i], strict=True)]
    return [row[n] for row in system]


def test_descriptive_statistics_by_hand() -> None:
    assert describe([2.0, 4.0, 9.0]) == ("5", "4", f"{math.sqrt(13):.4g}", "2", "9")


def test_factors_of_an_address() -> None:
    one = Observation("/a/b/c/page.php?x=1&y=2", True, backlinks=4, hops=2, site_size=20)
    assert one.factors == (4.0, 2.0, 3.0, 2.0, pytest.approx(math.log(20)))


def site(folder: Path, name: str, pages: int, back: dict[str, int]) -> str:
    """A lost site of pages in a chain, and recoveries with the first of them."""
    chain = {f"p{n}.html": f'<title>{n}</title><a href="p{n + 1}.html">next</a>' for n in range(1, pages)}
    files = {"index.html": '<title>home</title><a href="p1.html">first</a>', **chain}
    for part, count in {"lost": pages, **back}.items():
        (folder / name / part).mkdir(parents=True)
        for file, text in list(files.items())[:count]:
            (folder / name / part / file).write_text(text)
    return str(folder / name)


def test_the_tables_over_two_sites_by_hand(tmp_path: Path) -> None:
    measured = measure_site(site(tmp_path, "one", 4, {"exhaustive": 4, "naive": 2}))
    measured += measure_site(site(tmp_path, "two", 10, {"exhaustive": 9, "naive": 5}))
    found = {table.name: table for table in tables(measured)}
    assert {"table-16", "table-17-18", "table-19", "table-20", "regression"} <= found.keys()
    assert found["table-16"].rows[0][:4] == ("one", "naive", "4/2 50%", "4/2 50%")
    assert found["table-16"].rows[-1][2] == "4/4 100%"
    by_name = {row[:2]: row for row in found["table-19"].rows}
    assert by_name["recovered (%)", "naive"][2:] == ("2", "50", "50", "0", "50", "50")
    assert by_name["recovered (%)", "exhaustive"][3:5] == ("95", "95")
    level = {row[0]: row for row in found["table-20"].rows}
    assert level["s4"][1] == "0.275" and level["s4"][-1] == "50%"  # (0 + 0.5 + 0.1 + 0.5) / 4
    hops = {o.uri: o.hops for o in measured[0].observations}
    assert hops == {"/": 0, "/p1.html": 1, "/p2.html": 2, "/p3.html": 3}
    slope = next(row for row in found["regression"].rows if row[0] == "hops")
    assert float(slope[1]) < 0  # what is further away comes back less


def test_own_recoveries_count_against_what_is_known(tmp_path: Path) -> None:
    pages = [("http://x.com/", "text/html", b"<a href=a>a"), ("http://x.com/a", "text/html", b"a")]
    fill(tmp_path / "mine", pages, missing=["http://x.com/b?x=1", "http://x.com/c"]).close()
    (one,) = measure_site(str(tmp_path / "mine"))
    assert one.recovered_share == 50 and sum(o.recovered for o in one.observations) == 2
    assert {o.parameters for o in one.observations if not o.recovered} == {0, 1}


def test_the_command_writes_the_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = [site(tmp_path, name, 6, {"a": 3 + n, "b": 6}) for n, name in enumerate(("x", "y"))]
    assert main(["measure", "--many", *folders, "-o", str(tmp_path / "tables")]) == 0
    assert (tmp_path / "tables/table-16.tsv").read_text().startswith("site\trecovery\ttotal\t")
    assert main(["measure", "--many", *folders]) == 0
    assert "Success levels" in capsys.readouterr().out
    assert main(["measure", folders[0]]) == 2
    assert main(["measure", "--many", str(tmp_path / "tables")]) == 2
