"""Which kernels are compiled into one extension module. `setup.py` builds them so, and the package finds them so."""

LIBRARIES = {
    "_maps": ("lines", "walk", "search", "join", "patching"),
    "_indexes": ("scan", "surts", "records", "statistics"),
    "_compaction": ("rollup", "branches", "budget"),
    "_sets": ("sets", "setbudget", "fuse"),
    "_codes": ("gf256",),
}
