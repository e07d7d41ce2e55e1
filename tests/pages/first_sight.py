"""What is seen first of an open page, for tests of all pages."""

from __future__ import annotations

from pages.browser import Page

FIRST_IMAGE = "document.images[0].getBoundingClientRect().top + scrollY"
NARROW = """[...document.querySelectorAll('p, li, dd, summary, figcaption')].filter(block => {
  if (block.closest('table') || !block.offsetParent || block.querySelector('p, ul, ol, svg')) return false;
  const text = block.textContent.replace(/\\s+/g, ' ').trim(), style = getComputedStyle(block);
  const pen = document.createElement('canvas').getContext('2d');
  pen.font = style.font;
  const inner = block.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
  return text.length >= 60 && inner < 40 * pen.measureText(text).width / text.length;
}).map(block => block.textContent.trim().slice(0, 60))"""
LOW_CONTRAST = """(() => {
  const luminance = colour => {
    const [r, g, b] = colour.match(/[\\d.]+/g).map(v => v / 255)
      .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = element => {
    for (; element; element = element.parentElement) {
      const colour = getComputedStyle(element).backgroundColor;
      if (!/, 0\\)$/.test(colour)) return colour;
    }
    return 'rgb(255, 255, 255)';
  };
  const contrast = element => {
    const both = [getComputedStyle(element).color, ground(element)].map(luminance).sort((a, b) => a - b);
    return (both[1] + 0.05) / (both[0] + 0.05);
  };
  return [...document.querySelectorAll('main *, .masthead *, footer')]
    .filter(e => e.offsetParent && !e.closest('svg') && [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()))
    .filter(e => contrast(e) < 4.5).map(e => e.className + ': ' + e.textContent.trim().slice(0, 40));
})()"""


def look(page: Page, width: int, *, images: bool = True) -> None:
    """Assert that the first image is within 900 pixels, that nothing scrolls sideways, and that text can be read.

    Text has at least 40 characters a line (headings, short labels and tables apart) and a contrast of 4.5, which is
    level AA of WCAG 2.2, 1.4.3.
    """
    if images:
        assert page.evaluate(FIRST_IMAGE) < 900
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    narrow, pale = page.evaluate(NARROW), page.evaluate(LOW_CONTRAST)
    assert not narrow, narrow
    assert not pale, pale
    assert page.complaints == []
