"""The `surt` package, without its DNS: it asks the resolver about hosts like 999.1.1.1, and tests send no requests."""

from __future__ import annotations

import socket
import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # patterns in it have escapes that newer Pythons warn about
    from surt import GoogleURLCanonicalizer
    from surt import surt as reference_surt


class _NumbersOnly:
    """What the package uses of `socket`; names that are not addresses are unknown."""

    gaierror, herror, inet_ntoa = socket.gaierror, socket.herror, staticmethod(socket.inet_ntoa)

    @staticmethod
    def gethostbyname_ex(host: bytes) -> tuple[str, list[str], list[str]]:
        try:
            return "", [], [socket.inet_ntoa(socket.inet_aton(host.decode()))]
        except OSError:
            raise socket.gaierror(socket.EAI_NONAME, "not an address") from None


GoogleURLCanonicalizer.socket = _NumbersOnly

__all__ = ["reference_surt"]
