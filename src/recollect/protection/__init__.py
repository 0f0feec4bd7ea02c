"""Protection: a server's files, carried by its pages, back from whoever captured them (McCown 2007, chapter VIII)."""
