"""The files of the page: markup, styles and scripts, all our own, as the package has them."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response

_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}

HEADERS = {
    # Nothing from elsewhere, nothing inline, and no string ever becomes markup.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
        " base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
"""Of every answer of the page."""


@dataclass(frozen=True, slots=True)
class _File:
    octets: bytes
    media_type: str
    tag: str


class PageFiles:
    """The files by name, read once; they hold nothing of the fabric, so that everybody may have them."""

    def __init__(self) -> None:
        self._files: Mapping[str, _File] = {
            each.name: _file(each.name, each.read_bytes())
            for each in files("controller.web.page").joinpath("static").iterdir()
            if each.name.rpartition(".")[2] in _TYPES
        }

    async def answer(self, request: Request) -> Response:
        """Answer with the file that the path names; the page itself where it names none."""
        found = self._files.get(request.path_params.get("file", "page.html"))
        if found is None:
            return Response("not found\n", 404, HEADERS, "text/plain")
        headers = {**HEADERS, "Cache-Control": "no-cache", "ETag": found.tag}
        if request.headers.get("if-none-match") == found.tag:
            return Response(None, 304, headers)
        return Response(found.octets, 200, headers, found.media_type)


def _file(name: str, octets: bytes) -> _File:
    return _File(octets, _TYPES[name.rpartition(".")[2]], f'"{hashlib.sha256(octets).hexdigest()[:32]}"')
