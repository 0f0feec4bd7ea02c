"""Files as archived, for owners who want to edit and upload: byte-identical, under their own names, one host.

Hides: the choice of names. Nothing is rewritten, so links between pages are those of the lost site. Content encodings
are taken off, as in every output. Names are as `filenames` makes them: no file is a program of a web server, because
archived bytes must not run on a new host (`page.php` is `page_php.html`).
"""

from __future__ import annotations

from recollect.recovery.filenames import ANY_SYSTEM, NameRules, file_names
from recollect.recovery.ownfiles import OwnFiles
from recollect.recovery.rehost import main_test
from recollect.recovery.store import Store

FOLDER = "as-archived"


def write_as_archived(store: Store, files: OwnFiles, *, name_rules: NameRules = ANY_SYSTEM) -> dict[str, str]:
    """Write the site's own host as archived; returns URI -> file."""
    is_main = main_test(store)
    resources = {resource.uri: resource for resource in store.recovered(redirects=False) if is_main(resource.uri)}
    pairs = ((uri, resource.media_type) for uri, resource in resources.items())
    names = file_names(pairs, lambda _uri: FOLDER, name_rules)
    for uri, name in names.items():
        files.write(name, store.content(resources[uri]))
    return names
