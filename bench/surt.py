"""How fast `recollect.uris.surt` is against the `surt` package: the same URLs, one run, best of several rounds.

    make bench-surt                     100,000 generated URLs (and ../shared/data/eot/lookups.txt.zst when there)
    make bench-surt ARGS='URLS.txt'     the lines of a file instead

Both programs get the URLs one by one in turns, so that a busy machine slows both; every answer is compared.
"""

from __future__ import annotations

import random
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:] = [place for place in sys.path if Path(place).resolve() != HERE]  # `surt` is the package, not this file

from recollect.errors import BadURI  # noqa: E402 - after the path is put right
from recollect.uris import canonical, key_of_uri, surt  # noqa: E402

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the package has escapes in its patterns that newer Pythons warn about
    from surt import surt as reference

COUNT, ROUNDS, WANTED = 100_000, 5, 5.0
REAL = HERE.parents[1] / "shared/data/eot/lookups.txt.zst"
HEX, LETTERS = "0123456789abcdef", "abcdefghijklmnopqrstuvwxyz"


def main() -> int:
    sets: list[tuple[str, list[str]]] = []
    if len(sys.argv) > 1:
        sets += [(name, Path(name).read_text("utf-8", "surrogateescape").splitlines()) for name in sys.argv[1:]]
    else:
        sets.append((f"{COUNT:,} generated URLs", generate(COUNT)))
        if REAL.exists():
            sets.append((f"{COUNT:,} real URLs from ../shared/data/eot", real(COUNT)))
        else:
            print("no ../shared/data/eot/lookups.txt.zst here: generated URLs only")
    ratios = [measure(name, urls) for name, urls in sets]
    print(f"wanted: at least {WANTED:g} times as fast; slowest set: {min(ratios):.1f} times")
    return 0 if min(ratios) >= WANTED else 1


def measure(name: str, urls: list[str]) -> float:
    print(f"\n{name}")
    different = sum(answer(reference, url) != answer(surt, url) for url in urls)
    programs = {"surt 0.3.1": reference, "recollect.uris.surt": surt, "recollect.uris.key_of_uri": key_of_uri}
    best = dict.fromkeys([*programs, "recollect, cold host cache"], float("inf"))
    for _ in range(ROUNDS):
        for label, program in programs.items():
            best[label] = min(best[label], seconds(program, urls))
        canonical._hosts.clear()
        label = "recollect, cold host cache"
        best[label] = min(best[label], seconds(surt, urls))
    for label, time_taken in best.items():
        rate = len(urls) / time_taken
        print(f"  {label:28} {rate:>10,.0f} URLs/s   {best['surt 0.3.1'] / time_taken:5.1f} x")
    print(f"  answers that differ: {different:,} (docs/uris.md says where and why)")
    return best["surt 0.3.1"] / best["recollect.uris.surt"]


def answer(program: Callable[[str], object], url: str) -> object:
    try:
        return program(url)
    except (BadURI, ValueError, AttributeError):
        return None


def seconds(program: Callable[[str], object], urls: list[str]) -> float:
    errors = (BadURI, ValueError, AttributeError)
    start = time.perf_counter()
    for url in urls:
        try:  # noqa: SIM105 - the quickest way to go on
            program(url)
        except errors:
            pass
    return time.perf_counter() - start


def real(count: int) -> list[str]:
    import zstandard

    with REAL.open("rb") as raw:
        text = zstandard.ZstdDecompressor().stream_reader(raw).read().decode("utf-8", "surrogateescape")
    return random.Random(1).sample(text.splitlines(), count)


def generate(count: int) -> list[str]:
    """URLs as crawlers and readers send them: about one in four needs more than lower case and a turned host."""
    rng = random.Random(20150101)
    words = ["".join(rng.choices(LETTERS, k=rng.randint(2, 11))) for _ in range(4000)]
    hosts = [host(rng, words) for _ in range(count // 10)]
    weights = [1 / (rank + 5) for rank in range(len(hosts))]
    return [one_url(rng, words, chosen) for chosen in rng.choices(hosts, weights, k=count)]


def host(rng: random.Random, words: list[str]) -> str:
    ending = rng.choice(["com", "com", "org", "net", "gov", "de", "co.uk", "fr", "info", "com.br"])
    name = f"{rng.choice(words)}{rng.choice(['', '-' + rng.choice(words)])}.{ending}"
    return rng.choices(["www.", "", "www2.", rng.choice(words) + "."], [50, 30, 2, 18])[0] + name


def one_url(rng: random.Random, words: list[str], name: str) -> str:
    depth = rng.choices(range(7), [10, 22, 25, 20, 13, 7, 3])[0]
    segments = [rng.choice(words) + rng.choices(["", f"-{rng.randint(1, 999)}"], [3, 1])[0] for _ in range(depth)]
    path = "/" + "/".join(segments)
    if depth and rng.random() < 0.5:
        path += rng.choice([".html", ".html", ".php", ".aspx", ".jpg", ".gif", ".pdf", "/"])
    kind = rng.random()
    if kind < 0.08:
        path = path.title()
    elif kind < 0.13:
        path += rng.choice(["%20", "%C3%A9", "%2C", "ü", "%7E"]) + rng.choice(words)
    elif kind < 0.15:
        path = path.replace("/", rng.choice(["//", "/./", "/../"]), 1)
    elif kind < 0.17:
        name = rng.choice([name.upper(), f"{name}:8080", f"{name}:80", f"user:secret@{name}"])
    elif kind < 0.175:
        name = rng.choice(["bücher.example", f"192.168.{rng.randint(0, 255)}.{rng.randint(0, 255)}"])
    url = f"{rng.choices(['http', 'https'], [2, 3])[0]}://{name}{path}"
    if rng.random() < 0.25:
        url += "?" + query(rng, words)
    return url + (f"#{rng.choice(words)}" if rng.random() < 0.03 else "")


def query(rng: random.Random, words: list[str]) -> str:
    parts = [f"{rng.choice(words)}={rng.randint(0, 99999)}" for _ in range(rng.randint(1, 4))]
    kind = rng.random()
    if kind < 0.06:
        parts.append(rng.choice(["PHPSESSID=", "jsessionid=", "sid="]) + "".join(rng.choices(HEX, k=32)))
    elif kind < 0.12:
        parts.append(f"q={rng.choice(words)}%20{rng.choice(words)}+{rng.choice(words)}")
    elif kind < 0.2:
        parts.append(f"id={rng.randint(1, 10**6)}")
    return "&".join(parts)


if __name__ == "__main__":
    sys.exit(main())
