"""A page, parsed with the standard library."""

import base64
import gzip
import json
from functools import cached_property
from html.parser import HTMLParser

import numpy as np

_VOID = {"meta", "input", "br", "link", "img", "hr"}


class Element:
    """An element with its attributes, content and text."""

    def __init__(self, tag, attributes=()):
        self.tag, self.attributes, self.parts = tag, dict(attributes), []

    @property
    def text(self):
        return "".join(part if isinstance(part, str) else part.text for part in self.parts)

    @property
    def words(self):
        """The text with collapsed white space."""
        return " ".join(self.text.split())

    def all(self, tag=None, **attributes):
        """All descendants with a tag and attributes."""
        for part in self.parts:
            if isinstance(part, Element):
                own = part.attributes
                if tag in (None, part.tag) and attributes.items() <= own.items():
                    yield part
                yield from part.all(tag, **attributes)

    def one(self, tag=None, **attributes):
        (actual,) = self.all(tag, **attributes)
        return actual

    def rows(self):
        """The cells of a table, header first."""
        return [
            [cell.words for cell in row.parts if isinstance(cell, Element)]
            for row in self.all("tr")
        ]


class Page(Element, HTMLParser):
    """An HTML file; every element must be closed in order."""

    def __init__(self, text):
        Element.__init__(self, "page")
        HTMLParser.__init__(self, convert_charrefs=True)
        self.open = [self]
        self.feed(text)
        self.close()
        assert self.open == [self], f"<{self.open[-1].tag}> is not closed"

    @classmethod
    def read(cls, path):
        return cls(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        element = Element(tag, attrs)
        self.open[-1].parts.append(element)
        if tag not in _VOID:
            self.open.append(element)

    def handle_endtag(self, tag):
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data):
        self.open[-1].parts.append(data)

    @cached_property
    def data(self):
        """The data of the scripts."""
        return json.loads(gzip.decompress(base64.b64decode(self.one(id="data").text)))

    @property
    def script(self):
        """Our own scripts."""
        (own,) = (part for part in self.all("script") if not part.attributes)
        return own.text


def unpacked(packed):
    """An array, unpacked."""
    kind = np.dtype(f"<{packed['kind']}")
    sorted_bytes = np.frombuffer(base64.b64decode(packed["data"]), dtype=np.uint8)
    return sorted_bytes.reshape(kind.itemsize, -1).T.copy().view(kind).ravel()
