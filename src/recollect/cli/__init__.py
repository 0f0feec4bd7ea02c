"""The command line: data on stdout, talk on stderr, exit codes 0 done, 1 failed, 2 usage, 3 partial."""
