"""The page's files, from the package: read once, sent compressed. What is not in the list does not exist."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

PAGE = Path(__file__).parent / "page"
TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}


class PageFiles:
    """Attributes:
    paths: of all files, as requests name them.
    """

    def __init__(self, folder: Path = PAGE) -> None:
        self._files: dict[str, tuple[str, bytes, str]] = {}
        for file in sorted(folder.rglob("*")):
            if file.suffix in TYPES:
                data = file.read_bytes()
                name = "/" if file.name == "index.html" else f"/page/{file.relative_to(folder).as_posix()}"
                self._files[name] = TYPES[file.suffix], gzip.compress(data, 6, mtime=0), f'"{hashlib.sha256(data).hexdigest()[:24]}"'
        self.paths = list(self._files)

    async def endpoint(self, request: Request) -> Response:
        kind, data, tag = self._files[request.url.path]
        headers = {"ETag": tag, "Vary": "Accept-Encoding"}
        if request.headers.get("If-None-Match") == tag:
            return Response(status_code=304, headers=headers)
        if "gzip" in request.headers.get("Accept-Encoding", ""):
            return Response(data, media_type=kind, headers={**headers, "Content-Encoding": "gzip"})
        return Response(gzip.decompress(data), media_type=kind, headers=headers)
