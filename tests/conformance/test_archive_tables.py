"""Figures of the MementoMap paper (Alam et al., 2019) that can be computed again from its own raw numbers."""

from __future__ import annotations

import pytest

from recollect.profiles.compaction.fit import fit_heaps
from recollect.profiles.statistics.distribution import distribution_of
from recollect.profiles.statistics.stats import year_rows
from recollect.profiles.statistics.treestats import reduction

KEYS = 1_138_923_169
# Table 8: level, Count, Sum, RedQ.
LEVELS = [
    ("H1", 973, 1_138_923_169, 1.00000),
    ("H2", 2_068_333, 1_138_916_690, 0.99818),
    ("H3", 2_158_880, 630_309_184, 0.55153),
    ("H4", 1_329_137, 201_308_887, 0.17559),
    ("H5", 245_881, 39_396_636, 0.03438),
    ("H6", 103_579, 17_571_552, 0.01534),
    ("H7", 34_380, 9_636_427, 0.00843),
    ("H8", 69_829, 6_383_484, 0.00554),
    ("H9", 55_811, 2_660_591, 0.00229),
    ("P0", 5_841_503, 1_138_923_169, 0.99487),
    ("P1", 145_687_459, 1_134_466_338, 0.86817),
    ("P2", 290_761_965, 1_021_443_935, 0.64156),
    ("P3", 392_635_328, 795_954_162, 0.35412),
    ("P4", 215_251_988, 461_498_975, 0.21621),
    ("P5", 158_256_277, 287_069_088, 0.11310),
    ("P6", 91_334_214, 159_584_909, 0.05993),
    ("P7", 60_099_825, 91_006_216, 0.02714),
    ("P8", 31_101_768, 45_186_916, 0.01237),
    ("P9", 18_601_197, 23_008_116, 0.00387),
    ("P10", 6_817_122, 7_455_014, 0.00056),
]
# Table 6: year, URI-R, URI-R+, URI-M, URI-M+, Dup. URI-R%, gamma, gamma+.
YEARS = [
    (1996, 110_531, 111_303, 126_600, 127_569, 0.00, 1.15, 1.15),
    (1997, 466_515, 563_734, 847_783, 975_352, 3.02, 1.82, 1.73),
    (1998, 447_042, 928_112, 747_114, 1_722_466, 18.49, 1.67, 1.86),
    (1999, 732_866, 1_513_381, 1_233_994, 2_956_460, 20.14, 1.68, 1.95),
    (2000, 1_710_099, 2_874_152, 13_413_518, 16_369_978, 20.43, 7.84, 5.70),
    (2001, 4_837_012, 7_286_174, 7_873_642, 24_243_620, 8.79, 1.63, 3.33),
    (2002, 7_675_876, 13_364_488, 13_048_749, 37_292_369, 20.81, 1.70, 2.79),
    (2003, 11_043_675, 21_565_730, 19_989_725, 57_282_094, 25.74, 1.81, 2.66),
]
BEFORE_1996 = (772, 969)  # URI-R+ and URI-M+ of 1995


@pytest.mark.parametrize(("level", "count", "keys", "red_q"), LEVELS)
def test_table_8_red_q(level: str, count: int, keys: int, red_q: float) -> None:
    assert reduction(keys, count, KEYS) == pytest.approx(red_q, abs=6e-6), level


def test_table_6_cumulative_columns() -> None:
    before, counted = BEFORE_1996[0], [(1995, BEFORE_1996[0], BEFORE_1996[0], BEFORE_1996[1])]
    for year, uri_rs, uri_rs_total, uri_ms, *_ in YEARS:
        counted.append((year, uri_rs, uri_rs_total - before, uri_ms))
        before = uri_rs_total
    for row, published in zip(year_rows(counted, {})[1:], YEARS, strict=True):
        assert (row.year, row.uri_rs, row.uri_rs_total, row.uri_ms, row.uri_ms_total) == published[:5]
        assert 100 * row.duplicate_uri_rs == pytest.approx(published[5], abs=0.005)
        assert row.gamma == pytest.approx(published[6], abs=0.0051)
        assert row.gamma_total == pytest.approx(published[7], abs=0.0051)


def test_table_4_mean_is_gamma() -> None:
    # Table 4 gives the sizes only; any distribution over them has this mean.
    uri_rs, captures = 1_999_790_376, 4_923_080_506
    found = distribution_of({1: uri_rs - 1, captures - uri_rs + 1: 1})
    assert found is not None
    assert round(found.mean, 2) == 2.46


def test_heaps_law_of_alam_2015_is_reproduced() -> None:
    # CDX summarization paper (2015), section 5.1: K = 2.686, beta = 0.911 for ten accumulated years.
    sizes = [10.0**power for power in range(4, 10)]
    assert fit_heaps(sizes, [2.686 * size**0.911 for size in sizes]) == pytest.approx((2.686, 0.911))
