"""Files and folders that hold captures of web pages: crawls, saved pages, mirrors, browser caches.

One module per format. `recognise.open_source` finds the format by content and returns a `Source`.
"""
