"""What a branch is, for the kernels of compaction by budget; see `profiles.compaction.branches`."""

from libc.stdint cimport int64_t

# Flags of a branch: what records there are at its node, whether the map leaves open what lies below it, and whether it
# would be a plain leaf if the log asked for nothing below it.
cpdef enum:
    HELD = 1
    ABSENT = 2
    WILD = 4
    VOID = 8
    OPEN = 16
    GROWN = 32

# Roles of a row: a plain leaf of its branch; of its branch itself the held exact key, the exact void, the wildcard, the
# wildcard void; a second spelling of an exact void, which says nothing more. JSON is added where a line has a block.
cpdef enum:
    LEAF = 0
    OWN = 1
    ZERO = 2
    TOTAL = 3
    NONE = 4
    AGAIN = 5
    JSON = 8


cdef packed struct Branch:  # as the dtype BRANCH of `profiles.compaction.branches`
    int64_t up        # -1 for the root
    int64_t at        # where its name begins in the data
    int64_t length    # of its name
    int64_t kind
    int64_t depth
    int64_t flags
    int64_t leaves
    int64_t keys      # held exact keys: its own and its leaves'
    int64_t line_bytes      # bytes of their lines
    int64_t total[2]  # URI-Ms and URI-Rs; -1 is not stated
    int64_t bound     # of both, as in `lines.pack_bounds`
    int64_t own       # where the line of its wildcard is
