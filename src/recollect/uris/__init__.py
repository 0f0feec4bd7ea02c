"""URIs and keys: canonical SURTs, URI keys, the tree they form, and the policies that shorten them.

Hides: how a URI becomes the key that archives' indexes have, in all its quirks. `canonical` makes SURTs (with `hosts`,
`escapes` and `sessions`), `keys` the normal form and the tree, `spelling` the other keys under which a URI may be
found, `policies` the URI-Keys of Alam et al. (2015).
"""

from recollect.uris.canonical import key_of_uri, surt
from recollect.uris.keys import ancestors, covers, is_surt, lookup_keys, parent, segments, uri_key
from recollect.uris.policies import POLICIES, KeyPolicy, parse_policy, policy_key, policy_name, policy_spellings
from recollect.uris.spelling import spellings

__all__ = [
    "POLICIES",
    "KeyPolicy",
    "ancestors",
    "covers",
    "is_surt",
    "key_of_uri",
    "lookup_keys",
    "parent",
    "parse_policy",
    "policy_key",
    "policy_name",
    "policy_spellings",
    "segments",
    "spellings",
    "surt",
    "uri_key",
]
