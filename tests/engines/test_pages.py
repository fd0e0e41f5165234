"""Pages as they come: JSON, HTML, and what is neither."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envforge.engines import pages
from envforge.engines.pages import BadPageError, Kept, Row

URL = "https://index.example/simple/torch/"
JSON = "application/vnd.pypi.simple.v1+json"
DIGEST = "ab" * 32


def html(text: str, url: str = URL) -> tuple[Row, ...]:
    return pages.parse(text.encode(), "text/html; charset=utf-8", url)


def test_json() -> None:
    body = f"""{{"meta": {{"api-version": "1.1"}}, "name": "torch", "files": [
        {{"filename": "torch-2.0+cu126-py3-none-any.whl", "url": "../../w/torch-2.0%2Bcu126-py3-none-any.whl",
          "hashes": {{"sha256": "{DIGEST.upper()}", "md5": "x"}}, "size": 5, "requires-python": ">=3.9",
          "yanked": "broken", "core-metadata": {{"sha256": "x"}}}},
        {{"filename": "torch-1.0.tar.gz", "url": "https://files.example/torch-1.0.tar.gz", "hashes": {{}},
          "dist-info-metadata": false}}]}}"""
    assert pages.parse(body.encode(), JSON, URL) == (
        Row(
            file="torch-2.0+cu126-py3-none-any.whl",
            url="https://index.example/w/torch-2.0%2Bcu126-py3-none-any.whl",
            sha256=DIGEST, size=5, requires_python=">=3.9", yanked="broken", metadata=True,
        ),
        Row(file="torch-1.0.tar.gz", url="https://files.example/torch-1.0.tar.gz"),
    )  # fmt: skip


def test_html() -> None:
    text = f"""<!DOCTYPE html><html><head><title>x</title></head><body>
        <a href="/whl/torch-2.0%2Bcu126-cp310-cp310-linux_x86_64.whl#sha256={DIGEST}"
           data-requires-python="&gt;=3.9" data-core-metadata="sha256={DIGEST}">torch</a>
        <A HREF="torch-1.0.tar.gz#md5=abc" data-yanked="">old</A>
        <a href="torch-0.9.zip#sha256=short" data-yanked="a reason" data-dist-info-metadata="true">older</a>
        <a href="torch-0.8-py3-none-any.whl" data-dist-info-metadata="false">oldest</a>
        <a href="torch-0.7.exe">no</a> <a name="here">no</a> <a href="">no</a> <a href="../">up</a>
        </body></html>"""
    assert html(text) == (
        Row(
            file="torch-2.0+cu126-cp310-cp310-linux_x86_64.whl",
            url="https://index.example/whl/torch-2.0%2Bcu126-cp310-cp310-linux_x86_64.whl",
            sha256=DIGEST, requires_python=">=3.9", metadata=True,
        ),
        Row(file="torch-1.0.tar.gz", url=f"{URL}torch-1.0.tar.gz", yanked=True),
        Row(file="torch-0.9.zip", url=f"{URL}torch-0.9.zip", yanked="a reason", metadata=True),
        Row(file="torch-0.8-py3-none-any.whl", url=f"{URL}torch-0.8-py3-none-any.whl"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("base", "address"),
    [
        ("https://cdn.example/a/", "https://cdn.example/a/x-1.zip"),
        ("/b/", "https://index.example/b/x-1.zip"),
        ("../c/", "https://index.example/simple/c/x-1.zip"),
    ],
)
def test_a_base_is_where_relative_addresses_begin(base: str, address: str) -> None:
    (row,) = html(f'<html><head><base href="{base}"></head><a href="x-1.zip">x</a>')
    assert row.url == address


def test_a_query_is_no_part_of_the_name() -> None:
    (row,) = html('<a href="/get/x-1.0.zip?token=a/b-2.0.whl">x</a>')
    assert (row.file, row.url) == ("x-1.0.zip", "https://index.example/get/x-1.0.zip?token=a/b-2.0.whl")


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[]", b"null", b"3", b'"files"', b"{}", b'{"files": null}', b'{"files": 3}', b'{"files": ["a"]}',
        b'{"files": [{"filename": "a"}]}', b'{"files": [{"url": "a"}]}', b'{"files": [{"filename": "a", "url": 3}]}',
        b"\xff\xfe\xfa",
    ],
)  # fmt: skip
def test_json_that_is_no_page(body: bytes) -> None:
    with pytest.raises(BadPageError, match=r".+"):
        pages.parse(body, JSON, URL)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"files": [{"filename": null, "url": "a"}]}', id="null name"),
        pytest.param(b'{"files": [{"filename": 3, "url": "a"}]}', id="number name"),
        pytest.param(b'{"files": [{"filename": "a-1.zip", "url": "a", "size": "big"}]}', id="size"),
        pytest.param(b'{"files": [{"filename": "a-1.zip", "url": "a", "yanked": {}}]}', id="yanked"),
        pytest.param(b'{"files": ' + b"[" * 100_000, id="deep"),
    ],
)
def test_json_of_the_wrong_types(body: bytes) -> None:
    try:
        rows = pages.parse(body, JSON, URL)
    except BadPageError:
        return
    for row in rows:  # tolerated is fine too, if what is kept has its type
        assert isinstance(row.file, str)
        assert isinstance(row.size, int | None)
        assert isinstance(row.requires_python, str | None)
        assert isinstance(row.yanked, bool | str)
        assert row.url != URL


def test_html_with_an_address_that_is_none() -> None:
    try:
        html('<a href="http://[x/a-1.0.zip">a</a><a href="b-1.0.zip">b</a>')
    except BadPageError:
        return


@pytest.mark.parametrize("kind", ["", "text/plain", "application/octet-stream", "image/png"])
def test_other_content_is_no_page(kind: str) -> None:
    with pytest.raises(BadPageError, match="no index page"):
        pages.parse(b"{}", kind, URL)


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet=st.characters(exclude_characters="[]", exclude_categories=["Cs"]), max_size=200))
def test_no_text_breaks_the_html_parser(text: str) -> None:
    for row in html(f"<a href='{text}'>{text}</a>{text}"):
        assert row.file.endswith((".whl", ".tar.gz", ".zip"))


TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=10)
KEPT = st.builds(
    Kept,
    url=TEXT,
    content_type=TEXT,
    body=st.binary(max_size=50),
    fresh_until=st.floats(allow_nan=False, allow_infinity=False),
    etag=st.none() | TEXT,
    modified=st.none() | TEXT,
)


@settings(max_examples=60, deadline=None)
@given(KEPT)
def test_what_is_kept_is_what_comes_back(page: Kept) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "deep", "name.json")
        pages.save(path, page)
        assert pages.load(path) == page
        assert [entry.name for entry in path.parent.iterdir()] == ["name.json"]


@settings(max_examples=40, deadline=None)
@given(KEPT, st.data())
def test_a_torn_head_is_none(page: Kept, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "name.json")
        pages.save(path, page)
        whole = path.read_bytes()
        path.write_bytes(whole[: data.draw(st.integers(0, whole.index(b"\n") - 1))])
        assert pages.load(path) is None


@pytest.mark.parametrize("text", ["null", "[]", "{}", '{"rows": 3}', '{"rows": [[1]], "fresh_until": 0}', "\0"])
def test_a_damaged_page_is_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "name.json"
    path.write_text(text)
    assert pages.load(path) is None
    assert pages.load(tmp_path) is None
    assert pages.load(tmp_path / "absent") is None


@pytest.mark.parametrize(
    ("headers", "until"),
    [
        ({}, 1000.0),
        ({"cache-control": "max-age=600, public"}, 1600.0),
        ({"cache-control": "MAX-AGE=600", "age": "100"}, 1500.0),
        ({"cache-control": "max-age=600", "age": "soon"}, 1600.0),
        ({"cache-control": "no-cache, max-age=600"}, 1000.0),
        ({"cache-control": "no-store"}, 1000.0),
        ({"cache-control": "max-age=soon"}, 1000.0),
        ({"expires": "Thu, 01 Jan 1970 01:00:00 GMT"}, 3600.0),
        ({"expires": "0"}, 1000.0),
        ({"expires": "Thu, 99 Foo 1970 01:00:00 GMT"}, 1000.0),
        ({"expires": ""}, 1000.0),
    ],
)
def test_how_long_a_page_is_fresh(headers: dict[str, str], until: float) -> None:
    assert pages.fresh_until(headers, 1000.0) == until
