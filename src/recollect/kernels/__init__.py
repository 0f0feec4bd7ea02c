"""The compiled loops over bytes (Cython): lines of maps and indexes, keys, records, the tree of keys.

Hides the compiler. A door is a function that takes buffers (NumPy arrays, bytes) and numbers; its types are in the
`.pyi` beside it. What modules share is in `.pxd` files and found by `cimport`; nothing here imports NumPy or another
room. Loops run without the interpreter lock. `words` is a header alone; each other module is one extension.
"""
