from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from experiments.report.svg import element, joined, picture, text

WORDS = st.text(st.characters(min_codepoint=0x20, exclude_categories=("Cs", "Cn")))


@given(WORDS)
def test_words_come_out_of_an_element_as_they_went_in(words: str) -> None:
    parsed = ElementTree.fromstring(element("text", words, class_=words))
    assert parsed.text or words == ""
    assert (parsed.text or "", parsed.get("class")) == (words, words)


def test_markup_is_not_escaped_again() -> None:
    inner = element("title", "a < b")
    assert element("g", inner, joined((inner, "&"))) == "<g><title>a &lt; b</title><title>a &lt; b</title>&amp;</g>"


def test_attributes_are_named_as_in_svg_and_left_out_where_there_is_none() -> None:
    assert element("line", stroke_width=1.5, class_="rule", x=2.0, y=None) == (
        '<line stroke-width="1.5" class="rule" x="2"></line>'
    )


def test_a_picture_says_what_it_shows() -> None:
    parsed = ElementTree.fromstring(picture(100, 50.5, 'a "bar"', text(1, 2, "word")))
    assert (parsed.get("viewBox"), parsed.get("aria-label")) == ("0 0 100 50.5", 'a "bar"')
