"""The walk over the tree of keys, in the order of bytes. Every kernel that follows the tree walks it with this.

The tree. Nodes: the root (`*`), host segments (`com`, `com,x`), a port below its host (`com,x:80`), the root of a
host's paths (named `com,x)`), path segments (`com,x)/a`). An exact key belongs to its node; `N/*`, `N,*` or `*` is
the wildcard of node N. An IP address at the start of a host is one segment (ADDRESS).

The walk. `/a`, `/a-b`, `/a/1` is the order of bytes, so `/a` is interrupted by its sibling. But a node can only go on
while its name is a byte prefix of the current key and the byte after it is no greater than its last separator (`/` in
paths, `:` in hosts). Nodes that can still go on are therefore prefixes of each other: a stack, no deeper than the
longest key; ancestors lie below their descendants; a node that cannot go on will never come back. So one pass over
lines sorted by bytes sees every node opened once and closed once, children before parents, and no line needs to be
sorted again.

One exception to "prefixes of each other": the segments of a name such as `4,3,2,1-x` are opened above the address
`4,3,2,1`, which may go on (`4,3,2,1:80`) and is closed only after them. So such a node remembers its address.

How to walk: for each key, in order,

    take_key(&key, ...)
    while walk.top > 0 and not goes_on(&walk.nodes[walk.top], &key, common): close the top node; walk.top -= 1
    slot = nearest(&walk, &key)
    while walk.nodes[slot].length < key.name: slot = step_down(&walk, slot, &key); open the new node

What a kernel knows of a node it keeps in an array of its own, by slot. The root is in slot 0 and stays.
"""

from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

from recollect.kernels.lines cimport address_length
from recollect.kernels.words cimport Bytes, find_byte, same_bytes

# Kinds of nodes.
cpdef enum:
    ROOT = 0
    HOST = 1
    ADDRESS = 2
    PORT = 3
    PATH = 4

cdef enum:
    NO_WILDCARD = -1


cdef struct Node:
    Py_ssize_t at      # where its name begins in the data
    Py_ssize_t length  # of its name
    Py_ssize_t depth   # from 1 in hosts, and again from 1 (the root of a host's paths) in paths
    Py_ssize_t up      # the slot of its parent
    int kind
    unsigned char address[16]  # of an ADDRESS without brackets: its name


cdef struct Key:
    Bytes data
    Py_ssize_t at
    Py_ssize_t length
    Py_ssize_t host      # length of the host with its port: where `)` is, or the whole key
    Py_ssize_t name      # length of the name of the key's node: without wildcard and trailing slashes
    int wildcard         # NO_WILDCARD, or the kind of the node of which it is the wildcard: ROOT, HOST, PATH
    Py_ssize_t address   # length of the IP address that the host begins with, or 0


cdef struct Walk:
    Node *nodes
    Py_ssize_t top
    Py_ssize_t capacity
    Py_ssize_t max_host  # what lies deeper is one last segment
    Py_ssize_t max_path


cdef inline bint start_walk(Walk *walk, Py_ssize_t max_host, Py_ssize_t max_path) noexcept nogil:
    """Open the root; False without memory. `walk.nodes` is NULL or comes from an earlier walk."""
    walk.top = 0
    if walk.nodes == NULL:
        walk.capacity = 0
        if not reserve(walk, 256):
            return False
    walk.max_host, walk.max_path = max_host, max_path
    walk.nodes[0].at = walk.nodes[0].length = walk.nodes[0].depth = 0
    walk.nodes[0].up = -1
    walk.nodes[0].kind = ROOT
    return True


cdef inline bint reserve(Walk *walk, Py_ssize_t count) noexcept nogil:
    """Allocate space for `count` nodes more than are open; False without memory."""
    cdef Py_ssize_t capacity = walk.capacity
    cdef Node *nodes
    if walk.top + count < capacity:
        return True
    while capacity <= walk.top + count:
        capacity = 2 * capacity + 256
    nodes = <Node *>realloc(walk.nodes, <size_t>capacity * sizeof(Node))
    if nodes == NULL:
        return False
    walk.nodes, walk.capacity = nodes, capacity
    return True


cdef inline void end_walk(Walk *walk) noexcept nogil:
    free(walk.nodes)
    walk.nodes = NULL


cdef inline int wildcard_kind(Bytes key, Py_ssize_t length, Py_ssize_t host) noexcept nogil:
    """PATH for `...)/*`, HOST for `...,*`, ROOT for `*`, NO_WILDCARD for an exact key."""
    if length == 0 or key[length - 1] != c"*":
        return NO_WILDCARD
    if length == 1:
        return ROOT
    if key[length - 2] == c"/" and host < length:
        return PATH
    if key[length - 2] == c"," and host == length:
        return HOST
    return NO_WILDCARD


cdef inline void take_key(Key *key, Bytes data, Py_ssize_t at, Py_ssize_t length, Py_ssize_t common) noexcept nogil:
    """Take a key apart. It has `common` bytes in common with the one that `key` is about; -1 for the first key."""
    cdef Bytes text = data + at
    cdef Py_ssize_t host_end
    if common < 0 or common <= key.host:
        key.host = find_byte(text, c")", 0, length)
        host_end = key.host
        if host_end == length and length > 1 and text[length - 1] == c"*":
            host_end = length - 2
        key.address = address_length(text, host_end)
    key.data, key.at, key.length = data, at, length
    key.wildcard = wildcard_kind(text, length, key.host)
    if key.wildcard == ROOT:
        key.name = 0
    elif key.wildcard != NO_WILDCARD:
        key.name = length - 2
    else:
        key.name = length
        while key.name > key.host + 1 and text[key.name - 1] == c"/":
            key.name -= 1


cdef inline bint goes_on(const Node *node, const Key *key, Py_ssize_t common) noexcept nogil:
    """Whether an open node may go on at this key, which has `common` bytes in common with the key before."""
    if node.length > common:
        return False
    return node.length == key.length or key.data[key.at + node.length] <= (c"/" if node.kind == PATH else c":")


cdef inline bint is_above(const Node *node, const Key *key) noexcept nogil:
    """Whether an open node is an ancestor of the key's node, or that node itself."""
    cdef unsigned char after
    if node.kind == ROOT:
        return True
    if node.kind == ADDRESS:
        return (
            node.length == key.address
            and node.length <= key.name
            and (node.length > 15 or same_bytes(node.address, key.data + key.at, node.length))
        )
    if node.kind == HOST and node.length <= key.address:
        return False  # `4,3` is not above `4,3,2,1`
    if node.length == key.name:
        return True
    if node.length > key.name:
        return False
    after = key.data[key.at + node.length]
    if node.kind == PATH:
        return after == c"/"
    if node.length == key.host:
        return True
    return node.kind == HOST and (after == c"," or after == c":")


cdef inline Py_ssize_t nearest(const Walk *walk, const Key *key) noexcept nogil:
    """The slot of the deepest open node that is an ancestor of the key's node, or that node itself."""
    cdef Py_ssize_t slot = walk.top
    while not is_above(&walk.nodes[slot], key):
        slot -= 1
    return slot


cdef inline Py_ssize_t step_down(Walk *walk, Py_ssize_t slot, const Key *key) noexcept nogil:
    """Open the child of a node towards the key's node, which lies deeper; returns its slot. `reserve` comes first."""
    cdef Bytes text = key.data + key.at
    cdef Node *node = &walk.nodes[slot]
    cdef Py_ssize_t host_end = min(key.host, key.name)
    cdef Py_ssize_t depth = node.depth + 1
    cdef Py_ssize_t end
    cdef int kind = HOST
    if node.kind == PATH:
        kind = PATH
        end = key.name if depth >= walk.max_path else find_byte(text, c"/", node.length + 1, key.name)
    elif node.kind == ROOT and key.address:
        kind, depth = ADDRESS, 1
        end = key.address
    elif node.kind != ROOT and node.length == key.host:
        kind, depth = PATH, 1
        end = key.host + 1
    elif depth >= walk.max_host:
        kind = PORT if node.kind == ADDRESS else HOST
        end = host_end
    elif node.kind != ROOT and text[node.length] == c":":
        kind = PORT
        end = host_end
    else:
        end = 0 if node.kind == ROOT else node.length + 1
        while end < host_end and text[end] != c"," and text[end] != c":":
            end += 1
    walk.top += 1
    node = &walk.nodes[walk.top]
    node.at, node.length, node.depth, node.up, node.kind = key.at, end, depth, slot, kind
    if kind == ADDRESS and end < 16:  # longer ones are in brackets, and no other name begins like them
        memcpy(node.address, text, <size_t>end)
    return walk.top
